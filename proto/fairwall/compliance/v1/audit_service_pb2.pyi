from fairwall.wire.v1 import array_pb2 as _array_pb2
from fairwall.wire.v1 import metric_pb2 as _metric_pb2
from fairwall.wire.v1 import precision_pb2 as _precision_pb2
from fairwall.wire.v1 import visibility_pb2 as _visibility_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetTermsRequest(_message.Message):
    __slots__ = ("deal_id",)
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    deal_id: str
    def __init__(self, deal_id: _Optional[str] = ...) -> None: ...

class GetTermsResponse(_message.Message):
    __slots__ = ("people", "metrics", "mechanism", "epsilon", "epsilon_remaining", "queries_max", "precision", "epsilon_max", "epsilon_min", "reveal_max", "minimum_group", "budget", "by", "rows", "sealed", "commitment")
    PEOPLE_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    MECHANISM_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    EPSILON_REMAINING_FIELD_NUMBER: _ClassVar[int]
    QUERIES_MAX_FIELD_NUMBER: _ClassVar[int]
    PRECISION_FIELD_NUMBER: _ClassVar[int]
    EPSILON_MAX_FIELD_NUMBER: _ClassVar[int]
    EPSILON_MIN_FIELD_NUMBER: _ClassVar[int]
    REVEAL_MAX_FIELD_NUMBER: _ClassVar[int]
    MINIMUM_GROUP_FIELD_NUMBER: _ClassVar[int]
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    SEALED_FIELD_NUMBER: _ClassVar[int]
    COMMITMENT_FIELD_NUMBER: _ClassVar[int]
    people: int
    metrics: _containers.RepeatedScalarFieldContainer[_metric_pb2.Metric]
    mechanism: str
    epsilon: float
    epsilon_remaining: float
    queries_max: int
    precision: _precision_pb2.Precision
    epsilon_max: float
    epsilon_min: float
    reveal_max: float
    minimum_group: int
    budget: BudgetTerms
    by: _containers.RepeatedScalarFieldContainer[str]
    rows: RowsTerms
    sealed: SealedTerms
    commitment: CommitmentTerms
    def __init__(self, people: _Optional[int] = ..., metrics: _Optional[_Iterable[_Union[_metric_pb2.Metric, str]]] = ..., mechanism: _Optional[str] = ..., epsilon: _Optional[float] = ..., epsilon_remaining: _Optional[float] = ..., queries_max: _Optional[int] = ..., precision: _Optional[_Union[_precision_pb2.Precision, _Mapping]] = ..., epsilon_max: _Optional[float] = ..., epsilon_min: _Optional[float] = ..., reveal_max: _Optional[float] = ..., minimum_group: _Optional[int] = ..., budget: _Optional[_Union[BudgetTerms, _Mapping]] = ..., by: _Optional[_Iterable[str]] = ..., rows: _Optional[_Union[RowsTerms, _Mapping]] = ..., sealed: _Optional[_Union[SealedTerms, _Mapping]] = ..., commitment: _Optional[_Union[CommitmentTerms, _Mapping]] = ...) -> None: ...

class CommitmentTerms(_message.Message):
    __slots__ = ("rows", "rows_digest", "root", "seed_digest", "terms_digest")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    ROWS_DIGEST_FIELD_NUMBER: _ClassVar[int]
    ROOT_FIELD_NUMBER: _ClassVar[int]
    SEED_DIGEST_FIELD_NUMBER: _ClassVar[int]
    TERMS_DIGEST_FIELD_NUMBER: _ClassVar[int]
    rows: int
    rows_digest: bytes
    root: bytes
    seed_digest: bytes
    terms_digest: bytes
    def __init__(self, rows: _Optional[int] = ..., rows_digest: _Optional[bytes] = ..., root: _Optional[bytes] = ..., seed_digest: _Optional[bytes] = ..., terms_digest: _Optional[bytes] = ...) -> None: ...

class SealedTerms(_message.Message):
    __slots__ = ("features", "bytes_max", "seconds_max")
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    BYTES_MAX_FIELD_NUMBER: _ClassVar[int]
    SECONDS_MAX_FIELD_NUMBER: _ClassVar[int]
    features: _containers.RepeatedScalarFieldContainer[str]
    bytes_max: int
    seconds_max: float
    def __init__(self, features: _Optional[_Iterable[str]] = ..., bytes_max: _Optional[int] = ..., seconds_max: _Optional[float] = ...) -> None: ...

class BudgetTerms(_message.Message):
    __slots__ = ("revealed", "revealed_together", "revealed_most", "kept")
    REVEALED_FIELD_NUMBER: _ClassVar[int]
    REVEALED_TOGETHER_FIELD_NUMBER: _ClassVar[int]
    REVEALED_MOST_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    revealed: float
    revealed_together: float
    revealed_most: float
    kept: _containers.RepeatedCompositeFieldContainer[KeptBudget]
    def __init__(self, revealed: _Optional[float] = ..., revealed_together: _Optional[float] = ..., revealed_most: _Optional[float] = ..., kept: _Optional[_Iterable[_Union[KeptBudget, _Mapping]]] = ...) -> None: ...

class KeptBudget(_message.Message):
    __slots__ = ("revealed", "epsilon")
    REVEALED_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    revealed: float
    epsilon: float
    def __init__(self, revealed: _Optional[float] = ..., epsilon: _Optional[float] = ...) -> None: ...

class RowsTerms(_message.Message):
    __slots__ = ("id_column", "public_columns", "ids_digest", "table_digest", "column_digests")
    ID_COLUMN_FIELD_NUMBER: _ClassVar[int]
    PUBLIC_COLUMNS_FIELD_NUMBER: _ClassVar[int]
    IDS_DIGEST_FIELD_NUMBER: _ClassVar[int]
    TABLE_DIGEST_FIELD_NUMBER: _ClassVar[int]
    COLUMN_DIGESTS_FIELD_NUMBER: _ClassVar[int]
    id_column: str
    public_columns: _containers.RepeatedScalarFieldContainer[str]
    ids_digest: bytes
    table_digest: bytes
    column_digests: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, id_column: _Optional[str] = ..., public_columns: _Optional[_Iterable[str]] = ..., ids_digest: _Optional[bytes] = ..., table_digest: _Optional[bytes] = ..., column_digests: _Optional[_Iterable[bytes]] = ...) -> None: ...

class GetExpectedErrorRequest(_message.Message):
    __slots__ = ("deal_id", "metric", "models", "epsilon")
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    METRIC_FIELD_NUMBER: _ClassVar[int]
    MODELS_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    deal_id: str
    metric: _metric_pb2.Metric
    models: int
    epsilon: float
    def __init__(self, deal_id: _Optional[str] = ..., metric: _Optional[_Union[_metric_pb2.Metric, str]] = ..., models: _Optional[int] = ..., epsilon: _Optional[float] = ...) -> None: ...

class GetExpectedErrorResponse(_message.Message):
    __slots__ = ("error", "half_width", "midpoint_error", "revealed", "likely_half_width", "person_risk", "person_risk_most")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    HALF_WIDTH_FIELD_NUMBER: _ClassVar[int]
    MIDPOINT_ERROR_FIELD_NUMBER: _ClassVar[int]
    REVEALED_FIELD_NUMBER: _ClassVar[int]
    LIKELY_HALF_WIDTH_FIELD_NUMBER: _ClassVar[int]
    PERSON_RISK_FIELD_NUMBER: _ClassVar[int]
    PERSON_RISK_MOST_FIELD_NUMBER: _ClassVar[int]
    error: float
    half_width: float
    midpoint_error: float
    revealed: float
    likely_half_width: float
    person_risk: float
    person_risk_most: float
    def __init__(self, error: _Optional[float] = ..., half_width: _Optional[float] = ..., midpoint_error: _Optional[float] = ..., revealed: _Optional[float] = ..., likely_half_width: _Optional[float] = ..., person_risk: _Optional[float] = ..., person_risk_most: _Optional[float] = ...) -> None: ...

class AuditRequest(_message.Message):
    __slots__ = ("header", "predictions_chunk")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    PREDICTIONS_CHUNK_FIELD_NUMBER: _ClassVar[int]
    header: AuditHeader
    predictions_chunk: bytes
    def __init__(self, header: _Optional[_Union[AuditHeader, _Mapping]] = ..., predictions_chunk: _Optional[bytes] = ...) -> None: ...

class AuditHeader(_message.Message):
    __slots__ = ("request_id", "deal_id", "metric", "epsilon", "predictions", "threshold", "rows_digest", "by", "candidates", "nonce")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    METRIC_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    PREDICTIONS_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    ROWS_DIGEST_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    NONCE_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    deal_id: str
    metric: _metric_pb2.Metric
    epsilon: float
    predictions: _array_pb2.ArrayHeader
    threshold: float
    rows_digest: bytes
    by: str
    candidates: Candidates
    nonce: bytes
    def __init__(self, request_id: _Optional[str] = ..., deal_id: _Optional[str] = ..., metric: _Optional[_Union[_metric_pb2.Metric, str]] = ..., epsilon: _Optional[float] = ..., predictions: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ..., threshold: _Optional[float] = ..., rows_digest: _Optional[bytes] = ..., by: _Optional[str] = ..., candidates: _Optional[_Union[Candidates, _Mapping]] = ..., nonce: _Optional[bytes] = ...) -> None: ...

class Candidates(_message.Message):
    __slots__ = ("names", "utilities", "baseline", "at_least")
    NAMES_FIELD_NUMBER: _ClassVar[int]
    UTILITIES_FIELD_NUMBER: _ClassVar[int]
    BASELINE_FIELD_NUMBER: _ClassVar[int]
    AT_LEAST_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    utilities: _containers.RepeatedScalarFieldContainer[float]
    baseline: int
    at_least: float
    def __init__(self, names: _Optional[_Iterable[str]] = ..., utilities: _Optional[_Iterable[float]] = ..., baseline: _Optional[int] = ..., at_least: _Optional[float] = ...) -> None: ...

class AuditModelsRequest(_message.Message):
    __slots__ = ("request_id", "deal_id", "metric", "epsilon", "models", "threshold", "by")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    METRIC_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    MODELS_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    deal_id: str
    metric: _metric_pb2.Metric
    epsilon: float
    models: int
    threshold: float
    by: str
    def __init__(self, request_id: _Optional[str] = ..., deal_id: _Optional[str] = ..., metric: _Optional[_Union[_metric_pb2.Metric, str]] = ..., epsilon: _Optional[float] = ..., models: _Optional[int] = ..., threshold: _Optional[float] = ..., by: _Optional[str] = ...) -> None: ...

class AuditModelsResponse(_message.Message):
    __slots__ = ("answer",)
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    answer: AuditResponse
    def __init__(self, answer: _Optional[_Union[AuditResponse, _Mapping]] = ...) -> None: ...

class AuditSealedRequest(_message.Message):
    __slots__ = ("header", "models_chunk")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    MODELS_CHUNK_FIELD_NUMBER: _ClassVar[int]
    header: AuditSealedHeader
    models_chunk: bytes
    def __init__(self, header: _Optional[_Union[AuditSealedHeader, _Mapping]] = ..., models_chunk: _Optional[bytes] = ...) -> None: ...

class AuditSealedHeader(_message.Message):
    __slots__ = ("request_id", "deal_id", "metric", "epsilon", "sizes", "threshold", "by")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    METRIC_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    SIZES_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    deal_id: str
    metric: _metric_pb2.Metric
    epsilon: float
    sizes: _containers.RepeatedScalarFieldContainer[int]
    threshold: float
    by: str
    def __init__(self, request_id: _Optional[str] = ..., deal_id: _Optional[str] = ..., metric: _Optional[_Union[_metric_pb2.Metric, str]] = ..., epsilon: _Optional[float] = ..., sizes: _Optional[_Iterable[int]] = ..., threshold: _Optional[float] = ..., by: _Optional[str] = ...) -> None: ...

class AuditSealedResponse(_message.Message):
    __slots__ = ("answer",)
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    answer: AuditResponse
    def __init__(self, answer: _Optional[_Union[AuditResponse, _Mapping]] = ...) -> None: ...

class AuditTableRequest(_message.Message):
    __slots__ = ("request_id", "deal_id", "metric", "epsilon", "threshold", "table", "id_column", "models")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    METRIC_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    ID_COLUMN_FIELD_NUMBER: _ClassVar[int]
    MODELS_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    deal_id: str
    metric: _metric_pb2.Metric
    epsilon: float
    threshold: float
    table: str
    id_column: str
    models: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, request_id: _Optional[str] = ..., deal_id: _Optional[str] = ..., metric: _Optional[_Union[_metric_pb2.Metric, str]] = ..., epsilon: _Optional[float] = ..., threshold: _Optional[float] = ..., table: _Optional[str] = ..., id_column: _Optional[str] = ..., models: _Optional[_Iterable[str]] = ...) -> None: ...

class AuditTableResponse(_message.Message):
    __slots__ = ("answer",)
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    answer: AuditResponse
    def __init__(self, answer: _Optional[_Union[AuditResponse, _Mapping]] = ...) -> None: ...

class AuditResponse(_message.Message):
    __slots__ = ("gaps", "epsilon_charged", "epsilon_remaining", "low", "high", "probability_above", "epsilon_remaining_now", "likely_low", "likely_high", "rows_compared", "by", "draws", "nonce")
    GAPS_FIELD_NUMBER: _ClassVar[int]
    EPSILON_CHARGED_FIELD_NUMBER: _ClassVar[int]
    EPSILON_REMAINING_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    PROBABILITY_ABOVE_FIELD_NUMBER: _ClassVar[int]
    EPSILON_REMAINING_NOW_FIELD_NUMBER: _ClassVar[int]
    LIKELY_LOW_FIELD_NUMBER: _ClassVar[int]
    LIKELY_HIGH_FIELD_NUMBER: _ClassVar[int]
    ROWS_COMPARED_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    DRAWS_FIELD_NUMBER: _ClassVar[int]
    NONCE_FIELD_NUMBER: _ClassVar[int]
    gaps: _array_pb2.Array
    epsilon_charged: float
    epsilon_remaining: float
    low: _array_pb2.Array
    high: _array_pb2.Array
    probability_above: _array_pb2.Array
    epsilon_remaining_now: float
    likely_low: _array_pb2.Array
    likely_high: _array_pb2.Array
    rows_compared: bool
    by: str
    draws: _array_pb2.Array
    nonce: bytes
    def __init__(self, gaps: _Optional[_Union[_array_pb2.Array, _Mapping]] = ..., epsilon_charged: _Optional[float] = ..., epsilon_remaining: _Optional[float] = ..., low: _Optional[_Union[_array_pb2.Array, _Mapping]] = ..., high: _Optional[_Union[_array_pb2.Array, _Mapping]] = ..., probability_above: _Optional[_Union[_array_pb2.Array, _Mapping]] = ..., epsilon_remaining_now: _Optional[float] = ..., likely_low: _Optional[_Union[_array_pb2.Array, _Mapping]] = ..., likely_high: _Optional[_Union[_array_pb2.Array, _Mapping]] = ..., rows_compared: bool = ..., by: _Optional[str] = ..., draws: _Optional[_Union[_array_pb2.Array, _Mapping]] = ..., nonce: _Optional[bytes] = ...) -> None: ...
