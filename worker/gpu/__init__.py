"""The GPUs of this machine: which there are, how they are, and who has them.

port    what a GPU is, whoever made it
nvml    a program that asks NVIDIA's driver
nvidia  what that driver said, in these terms
amdgpu  a program that asks the kernel of AMD's
amd     what that said, in these terms
probing runs such a program, with a time limit
figures what was measured of them, and what is too little
pool    lends them, and knows which are well
locks   keep two workers of a machine from lending the same
"""
