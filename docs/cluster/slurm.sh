#!/bin/bash
# A study on several machines of a Slurm cluster:  sbatch slurm.sh study.toml
# Change what is marked; home or another folder must be shared by all machines.
#SBATCH --job-name=equipoise
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --time=08:00:00
##SBATCH --gpus-per-node=4            # for GPUs: take away one #
#SBATCH --signal=B:TERM@120           # two minutes before the end, so that the driver can stop in order

set -euo pipefail
study=$1
source "$HOME/equipoise/.venv/bin/activate"   # CHANGE: an environment with 'equipoise[study,ray]', the same on all machines

port=$((20000 + SLURM_JOB_ID % 20000))         # so that two jobs on one machine do not meet
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
address=$head:$port
resources=(--num-cpus "$SLURM_CPUS_PER_TASK" --num-gpus "${SLURM_GPUS_ON_NODE:-0}")

srun --overlap --nodes=1 --ntasks=1 --nodelist="$head" \
    ray start --head --port="$port" "${resources[@]}" --disable-usage-stats --block &
until ray health-check --address "$address" 2>/dev/null; do sleep 1; done
if ((SLURM_NNODES > 1)); then
    srun --overlap --nodes=$((SLURM_NNODES - 1)) --ntasks=$((SLURM_NNODES - 1)) --exclude="$head" \
        ray start --address="$address" "${resources[@]}" --disable-usage-stats --block &
fi
until (($(ray status --address "$address" | grep -c ' node_') >= SLURM_NNODES)); do sleep 1; done

# The driver. Results are in runs/NAME of the folder that the job was submitted from: submit the same again to go on.
srun --overlap --nodes=1 --ntasks=1 --nodelist="$head" \
    equipoise run "$study" --engine ray --address "$address" &
driver=$!
trap 'kill -INT "$driver"' TERM
wait "$driver" || wait "$driver"
