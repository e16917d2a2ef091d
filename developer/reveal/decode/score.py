r"""The score test: each person's first-order effect on the likelihood, with all others at their mean.

At the mean-field point z = N0/n a row's gap has the Gaussian spread of the others' attributes, and its error the public
distribution. With g the slope of the log-density of both together (`likelihood.smeared`) and ``x = (h - hbar) z + error
/ c`` as in `ep`, the likelihood's slope along z_j is the sum of g_i (h_ij - hbar_i) over rows; to first order it is the
log-likelihood ratio of z_j = 1 to z_j = 0. For Cauchy noise g is bounded, so one outlier does little harm. It takes m n
steps.
"""

from developer.reveal.decode import lstsq
from developer.reveal.decode.decoder import DecoderInputs
from developer.reveal.decode.ep import centred, even_odds, exact, prior_log_odds, rescaled, to_v
from developer.reveal.decode.likelihood import smeared
from fairwall.arrays import Floats
from fairwall.laws.noise.distributions import Gaussian


def decode(evidence: DecoderInputs) -> Floats:
    """Estimate v from everybody's log-likelihood ratio; without sizes by least squares."""
    if not evidence.n0 or not evidence.n1:
        return lstsq.decode(evidence)
    return to_v(evidence, even_odds(evidence, prior_log_odds(evidence) + ratios(evidence)))


def ratios(evidence: DecoderInputs) -> Floats:
    """Return the first-order log-likelihood ratios, (n,), of being disadvantaged to being advantaged."""
    H, x = centred(evidence)
    n0, n1, n = evidence.n0, evidence.n1, H.shape[1]
    law = Gaussian(0.0) if exact(evidence) else rescaled(evidence.noise or Gaussian(0.0), n0 * n1 / (n0 + n1))
    share = n0 / (n0 + n1)
    # The variance of a sum over N0 people drawn without replacement.
    variance = share * (1 - share) * n / max(n - 1, 1) * (H * H).sum(axis=1)
    telling = variance > 1e-18
    _, g, _ = smeared(law, x[telling], variance[telling])
    slopes: Floats = g @ H[telling]
    return slopes
