"""Public mathematics: metrics, their sensitivities, the laws of the noise, and what they cost in privacy.

Everything here is known to everybody (Kerckhoffs). Compliance samples from these laws, the developer's decoders
evaluate the same densities, and each is written once.
"""
