"""What makes a GPU fast, in one place: its streams, layers, half-precision weights and kernels.

Layers are as any others, and everything works without a GPU. Kernels are written in Triton and imported when needed.
"""
