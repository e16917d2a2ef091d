from fairwall.wire.v1 import array_pb2 as _array_pb2
from fairwall.wire.v1 import metric_pb2 as _metric_pb2
from fairwall.wire.v1 import precision_pb2 as _precision_pb2
from fairwall.wire.v1 import visibility_pb2 as _visibility_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Turn(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TURN_UNSPECIFIED: _ClassVar[Turn]
    TURN_WAIT: _ClassVar[Turn]
    TURN_OVER: _ClassVar[Turn]

class Game(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    GAME_UNSPECIFIED: _ClassVar[Game]
    GAME_REVEAL: _ClassVar[Game]
    GAME_INFERENCE: _ClassVar[Game]
    GAME_RELEASE: _ClassVar[Game]
    GAME_DISCLOSURE: _ClassVar[Game]
    GAME_TRAINING: _ClassVar[Game]
    GAME_GROUPS: _ClassVar[Game]
    GAME_WASH: _ClassVar[Game]
    GAME_OVERFIT: _ClassVar[Game]
    GAME_CURATOR: _ClassVar[Game]
TURN_UNSPECIFIED: Turn
TURN_WAIT: Turn
TURN_OVER: Turn
GAME_UNSPECIFIED: Game
GAME_REVEAL: Game
GAME_INFERENCE: Game
GAME_RELEASE: Game
GAME_DISCLOSURE: Game
GAME_TRAINING: Game
GAME_GROUPS: Game
GAME_WASH: Game
GAME_OVERFIT: Game
GAME_CURATOR: Game

class JoinRequest(_message.Message):
    __slots__ = ("protocol_version",)
    PROTOCOL_VERSION_FIELD_NUMBER: _ClassVar[int]
    protocol_version: int
    def __init__(self, protocol_version: _Optional[int] = ...) -> None: ...

class JoinResponse(_message.Message):
    __slots__ = ("turn", "scenario_digest", "counterpart_address", "game")
    TURN_FIELD_NUMBER: _ClassVar[int]
    SCENARIO_DIGEST_FIELD_NUMBER: _ClassVar[int]
    COUNTERPART_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    GAME_FIELD_NUMBER: _ClassVar[int]
    turn: Turn
    scenario_digest: str
    counterpart_address: str
    game: Game
    def __init__(self, turn: _Optional[_Union[Turn, str]] = ..., scenario_digest: _Optional[str] = ..., counterpart_address: _Optional[str] = ..., game: _Optional[_Union[Game, str]] = ...) -> None: ...

class AwaitEndRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AwaitEndResponse(_message.Message):
    __slots__ = ("turn",)
    TURN_FIELD_NUMBER: _ClassVar[int]
    turn: Turn
    def __init__(self, turn: _Optional[_Union[Turn, str]] = ...) -> None: ...

class TakeComplianceDealRequest(_message.Message):
    __slots__ = ("after_deal_id",)
    AFTER_DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    after_deal_id: str
    def __init__(self, after_deal_id: _Optional[str] = ...) -> None: ...

class TakeComplianceDealResponse(_message.Message):
    __slots__ = ("turn", "deal", "labels_chunk", "protected_chunk", "features_chunk", "sensitive_chunk", "release_chunk", "study_cells_chunk", "study_answers_chunk", "groups_chunk")
    TURN_FIELD_NUMBER: _ClassVar[int]
    DEAL_FIELD_NUMBER: _ClassVar[int]
    LABELS_CHUNK_FIELD_NUMBER: _ClassVar[int]
    PROTECTED_CHUNK_FIELD_NUMBER: _ClassVar[int]
    FEATURES_CHUNK_FIELD_NUMBER: _ClassVar[int]
    SENSITIVE_CHUNK_FIELD_NUMBER: _ClassVar[int]
    RELEASE_CHUNK_FIELD_NUMBER: _ClassVar[int]
    STUDY_CELLS_CHUNK_FIELD_NUMBER: _ClassVar[int]
    STUDY_ANSWERS_CHUNK_FIELD_NUMBER: _ClassVar[int]
    GROUPS_CHUNK_FIELD_NUMBER: _ClassVar[int]
    turn: Turn
    deal: ComplianceDeal
    labels_chunk: bytes
    protected_chunk: bytes
    features_chunk: bytes
    sensitive_chunk: bytes
    release_chunk: bytes
    study_cells_chunk: bytes
    study_answers_chunk: bytes
    groups_chunk: bytes
    def __init__(self, turn: _Optional[_Union[Turn, str]] = ..., deal: _Optional[_Union[ComplianceDeal, _Mapping]] = ..., labels_chunk: _Optional[bytes] = ..., protected_chunk: _Optional[bytes] = ..., features_chunk: _Optional[bytes] = ..., sensitive_chunk: _Optional[bytes] = ..., release_chunk: _Optional[bytes] = ..., study_cells_chunk: _Optional[bytes] = ..., study_answers_chunk: _Optional[bytes] = ..., groups_chunk: _Optional[bytes] = ...) -> None: ...

class ComplianceDeal(_message.Message):
    __slots__ = ("deal_id", "noise_seeded", "seed", "audits", "release", "study", "statistics", "groups", "curator")
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    NOISE_SEEDED_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    AUDITS_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    STUDY_FIELD_NUMBER: _ClassVar[int]
    STATISTICS_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    CURATOR_FIELD_NUMBER: _ClassVar[int]
    deal_id: str
    noise_seeded: bool
    seed: bytes
    audits: AuditCards
    release: ReleaseCards
    study: StudyCards
    statistics: StatisticsCards
    groups: GroupCards
    curator: CuratorCards
    def __init__(self, deal_id: _Optional[str] = ..., noise_seeded: bool = ..., seed: _Optional[bytes] = ..., audits: _Optional[_Union[AuditCards, _Mapping]] = ..., release: _Optional[_Union[ReleaseCards, _Mapping]] = ..., study: _Optional[_Union[StudyCards, _Mapping]] = ..., statistics: _Optional[_Union[StatisticsCards, _Mapping]] = ..., groups: _Optional[_Union[GroupCards, _Mapping]] = ..., curator: _Optional[_Union[CuratorCards, _Mapping]] = ...) -> None: ...

class AuditCards(_message.Message):
    __slots__ = ("metrics", "mechanism", "epsilon", "delta", "batch_delta", "queries_max", "labels", "protected", "features", "bounding", "precision", "differencing", "reveal_max", "sealed")
    METRICS_FIELD_NUMBER: _ClassVar[int]
    MECHANISM_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    BATCH_DELTA_FIELD_NUMBER: _ClassVar[int]
    QUERIES_MAX_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    PROTECTED_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    BOUNDING_FIELD_NUMBER: _ClassVar[int]
    PRECISION_FIELD_NUMBER: _ClassVar[int]
    DIFFERENCING_FIELD_NUMBER: _ClassVar[int]
    REVEAL_MAX_FIELD_NUMBER: _ClassVar[int]
    SEALED_FIELD_NUMBER: _ClassVar[int]
    metrics: _containers.RepeatedScalarFieldContainer[_metric_pb2.Metric]
    mechanism: str
    epsilon: float
    delta: float
    batch_delta: float
    queries_max: int
    labels: _array_pb2.ArrayHeader
    protected: _array_pb2.ArrayHeader
    features: _array_pb2.ArrayHeader
    bounding: str
    precision: _precision_pb2.Precision
    differencing: int
    reveal_max: float
    sealed: bytes
    def __init__(self, metrics: _Optional[_Iterable[_Union[_metric_pb2.Metric, str]]] = ..., mechanism: _Optional[str] = ..., epsilon: _Optional[float] = ..., delta: _Optional[float] = ..., batch_delta: _Optional[float] = ..., queries_max: _Optional[int] = ..., labels: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ..., protected: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ..., features: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ..., bounding: _Optional[str] = ..., precision: _Optional[_Union[_precision_pb2.Precision, _Mapping]] = ..., differencing: _Optional[int] = ..., reveal_max: _Optional[float] = ..., sealed: _Optional[bytes] = ...) -> None: ...

class ReleaseCards(_message.Message):
    __slots__ = ("audits", "terms", "sensitive", "release")
    AUDITS_FIELD_NUMBER: _ClassVar[int]
    TERMS_FIELD_NUMBER: _ClassVar[int]
    SENSITIVE_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    audits: AuditCards
    terms: ReleaseTerms
    sensitive: _array_pb2.ArrayHeader
    release: _array_pb2.ArrayHeader
    def __init__(self, audits: _Optional[_Union[AuditCards, _Mapping]] = ..., terms: _Optional[_Union[ReleaseTerms, _Mapping]] = ..., sensitive: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ..., release: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ...) -> None: ...

class StudyCards(_message.Message):
    __slots__ = ("terms", "study_cells", "study_answers")
    TERMS_FIELD_NUMBER: _ClassVar[int]
    STUDY_CELLS_FIELD_NUMBER: _ClassVar[int]
    STUDY_ANSWERS_FIELD_NUMBER: _ClassVar[int]
    terms: StudyTerms
    study_cells: _array_pb2.ArrayHeader
    study_answers: _array_pb2.ArrayHeader
    def __init__(self, terms: _Optional[_Union[StudyTerms, _Mapping]] = ..., study_cells: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ..., study_answers: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ...) -> None: ...

class StatisticsCards(_message.Message):
    __slots__ = ("terms", "protected")
    TERMS_FIELD_NUMBER: _ClassVar[int]
    PROTECTED_FIELD_NUMBER: _ClassVar[int]
    terms: StatisticsTerms
    protected: _array_pb2.ArrayHeader
    def __init__(self, terms: _Optional[_Union[StatisticsTerms, _Mapping]] = ..., protected: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ...) -> None: ...

class GroupCards(_message.Message):
    __slots__ = ("names", "sizes", "epsilon", "queries_max", "groups")
    NAMES_FIELD_NUMBER: _ClassVar[int]
    SIZES_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    QUERIES_MAX_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    sizes: _containers.RepeatedScalarFieldContainer[int]
    epsilon: float
    queries_max: int
    groups: _array_pb2.ArrayHeader
    def __init__(self, names: _Optional[_Iterable[str]] = ..., sizes: _Optional[_Iterable[int]] = ..., epsilon: _Optional[float] = ..., queries_max: _Optional[int] = ..., groups: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ...) -> None: ...

class CuratorCards(_message.Message):
    __slots__ = ("audits", "minimum_group", "committed", "cheat", "strength", "share", "sample", "passes")
    AUDITS_FIELD_NUMBER: _ClassVar[int]
    MINIMUM_GROUP_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_FIELD_NUMBER: _ClassVar[int]
    CHEAT_FIELD_NUMBER: _ClassVar[int]
    STRENGTH_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_FIELD_NUMBER: _ClassVar[int]
    PASSES_FIELD_NUMBER: _ClassVar[int]
    audits: AuditCards
    minimum_group: int
    committed: bool
    cheat: str
    strength: int
    share: float
    sample: int
    passes: float
    def __init__(self, audits: _Optional[_Union[AuditCards, _Mapping]] = ..., minimum_group: _Optional[int] = ..., committed: bool = ..., cheat: _Optional[str] = ..., strength: _Optional[int] = ..., share: _Optional[float] = ..., sample: _Optional[int] = ..., passes: _Optional[float] = ...) -> None: ...

class StatisticsTerms(_message.Message):
    __slots__ = ("epsilon", "delta")
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    epsilon: float
    delta: float
    def __init__(self, epsilon: _Optional[float] = ..., delta: _Optional[float] = ...) -> None: ...

class StudyTerms(_message.Message):
    __slots__ = ("cells", "records", "epsilon")
    CELLS_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    cells: int
    records: bool
    epsilon: float
    def __init__(self, cells: _Optional[int] = ..., records: bool = ..., epsilon: _Optional[float] = ...) -> None: ...

class ReleaseTerms(_message.Message):
    __slots__ = ("protocol", "columns", "epsilon", "sizes", "budget", "queried")
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    SIZES_FIELD_NUMBER: _ClassVar[int]
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    QUERIED_FIELD_NUMBER: _ClassVar[int]
    protocol: str
    columns: _containers.RepeatedCompositeFieldContainer[SensitiveColumn]
    epsilon: float
    sizes: _containers.RepeatedScalarFieldContainer[int]
    budget: float
    queried: QueryTerms
    def __init__(self, protocol: _Optional[str] = ..., columns: _Optional[_Iterable[_Union[SensitiveColumn, _Mapping]]] = ..., epsilon: _Optional[float] = ..., sizes: _Optional[_Iterable[int]] = ..., budget: _Optional[float] = ..., queried: _Optional[_Union[QueryTerms, _Mapping]] = ...) -> None: ...

class QueryTerms(_message.Message):
    __slots__ = ("queries", "mechanism", "epsilon")
    QUERIES_FIELD_NUMBER: _ClassVar[int]
    MECHANISM_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    queries: int
    mechanism: str
    epsilon: float
    def __init__(self, queries: _Optional[int] = ..., mechanism: _Optional[str] = ..., epsilon: _Optional[float] = ...) -> None: ...

class SensitiveColumn(_message.Message):
    __slots__ = ("name", "place", "domain", "share", "groups")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    name: str
    place: int
    domain: int
    share: float
    groups: bool
    def __init__(self, name: _Optional[str] = ..., place: _Optional[int] = ..., domain: _Optional[int] = ..., share: _Optional[float] = ..., groups: bool = ...) -> None: ...

class ServeTrialRequest(_message.Message):
    __slots__ = ("deal_id",)
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    deal_id: str
    def __init__(self, deal_id: _Optional[str] = ...) -> None: ...

class ServeTrialResponse(_message.Message):
    __slots__ = ("ended",)
    ENDED_FIELD_NUMBER: _ClassVar[int]
    ended: bool
    def __init__(self, ended: bool = ...) -> None: ...

class SubmitAuditReportRequest(_message.Message):
    __slots__ = ("deal_id", "audits", "epsilon_spent", "utilities", "release_spent", "group_rates", "release_audits")
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    AUDITS_FIELD_NUMBER: _ClassVar[int]
    EPSILON_SPENT_FIELD_NUMBER: _ClassVar[int]
    UTILITIES_FIELD_NUMBER: _ClassVar[int]
    RELEASE_SPENT_FIELD_NUMBER: _ClassVar[int]
    GROUP_RATES_FIELD_NUMBER: _ClassVar[int]
    RELEASE_AUDITS_FIELD_NUMBER: _ClassVar[int]
    deal_id: str
    audits: _containers.RepeatedCompositeFieldContainer[AuditRecord]
    epsilon_spent: float
    utilities: _containers.RepeatedScalarFieldContainer[float]
    release_spent: float
    group_rates: _containers.RepeatedScalarFieldContainer[float]
    release_audits: _containers.RepeatedCompositeFieldContainer[AuditRecord]
    def __init__(self, deal_id: _Optional[str] = ..., audits: _Optional[_Iterable[_Union[AuditRecord, _Mapping]]] = ..., epsilon_spent: _Optional[float] = ..., utilities: _Optional[_Iterable[float]] = ..., release_spent: _Optional[float] = ..., group_rates: _Optional[_Iterable[float]] = ..., release_audits: _Optional[_Iterable[_Union[AuditRecord, _Mapping]]] = ...) -> None: ...

class AuditRecord(_message.Message):
    __slots__ = ("request_id", "metric", "exact", "released", "epsilon", "flagged", "case_id")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    METRIC_FIELD_NUMBER: _ClassVar[int]
    EXACT_FIELD_NUMBER: _ClassVar[int]
    RELEASED_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    FLAGGED_FIELD_NUMBER: _ClassVar[int]
    CASE_ID_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    metric: _metric_pb2.Metric
    exact: _array_pb2.Array
    released: _array_pb2.Array
    epsilon: float
    flagged: int
    case_id: str
    def __init__(self, request_id: _Optional[str] = ..., metric: _Optional[_Union[_metric_pb2.Metric, str]] = ..., exact: _Optional[_Union[_array_pb2.Array, _Mapping]] = ..., released: _Optional[_Union[_array_pb2.Array, _Mapping]] = ..., epsilon: _Optional[float] = ..., flagged: _Optional[int] = ..., case_id: _Optional[str] = ...) -> None: ...

class SubmitAuditReportResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
