#!/bin/bash
# Repack one large file by many ranks.  Submit it with
#
#     sbatch large.sh in.nc out.nc --chunk t2m:365x20x20 --filter shuffle+deflate:4
#
# The folder of out.nc must be seen by all nodes.  Submitted again, it goes on with what is left.
#SBATCH --job-name=repack
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=4
#SBATCH --mem=64G
#SBATCH --time=08:00:00
set -euo pipefail

# Each rank encodes on the cores of its task.  For MPICH: --mpi=pmi2.
srun --mpi=pmix chunkwise repack "$@" --resume --threads "${SLURM_CPUS_PER_TASK:-1}"
