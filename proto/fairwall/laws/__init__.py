"""Public mathematics: metrics, their sensitivities, the noise distributions, and their privacy losses.

Everything here is known to everybody (Kerckhoffs). Compliance samples from these distributions, the developer's
decoders evaluate the same densities, and each is written once.
"""
