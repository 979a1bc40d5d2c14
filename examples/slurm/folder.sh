#!/bin/bash
# Repack all files of a folder, one task a file.  Submit it with
#
#     sbatch --array=0-99 folder.sh archive/ packed/ --filter shuffle+deflate:4
#
# and as many tasks as the folder has files, or fewer: each task takes every Nth file, N being
# the number of tasks.
# Submitted again, after a time limit or a failure, it goes on with what is left.
#SBATCH --job-name=repack
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=8G
#SBATCH --time=04:00:00
set -euo pipefail

from=$1 to=$2
shift 2
mkdir -p "$to"
shopt -s nullglob
files=("$from"/*.nc "$from"/*.h5)
failed=0
for ((i = SLURM_ARRAY_TASK_ID; i < ${#files[@]}; i += SLURM_ARRAY_TASK_COUNT)); do
    out=$to/$(basename "${files[i]}")
    [ -e "$out" ] && continue
    srun chunkwise repack "${files[i]}" "$out" --resume "$@" || failed=1
done
exit $failed
