"""The distribution-inference game, in which an outsider is to tell which group a model was trained on."""
