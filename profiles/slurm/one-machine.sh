#!/usr/bin/env bash
# A real Slurm on one machine, to try profiles/slurm or to test it: as root, on Debian 12 or another
# with its packages.
#
#   one-machine.sh up [--no-accounting] [--gpus N]   installs what is missing, starts it
#   one-machine.sh status
#   one-machine.sh down                              stops what it started
#
# --no-accounting: without slurmdbd and its database, as many small clusters are.
# --gpus N: declares N GPUs that are not there, so that jobs can ask for them.
#
# Not for real use: whoever has an account on this machine may submit, and nothing limits a job but
# its memory and time.
# It refuses to touch a Slurm that it has not set up.
set -euo pipefail

conf=/etc/slurm
state=/var/lib/slurm
run=/run/slurm
logs=/var/log/slurm
mark="# written by ntkcond, profiles/slurm/one-machine.sh"
node=$(hostname -s)

fail() { echo "one-machine.sh: $*" >&2; exit 1; }

wait_for() { # seconds, what, command...
    local left=$(($1 * 5)) what=$2
    shift 2
    until "$@" >/dev/null 2>&1; do
        ((left-- > 0)) || fail "$what does not answer; see $logs"
        sleep 0.2
    done
}

install_packages() {
    # libpmix-dev: the name by which Slurm loads PMIx, for ranks of MPI
    local wanted=(munge slurmctld slurmd slurm-client libpmix-dev) missing=() package
    if [ "$accounting" = yes ]; then
        wanted+=(slurmdbd slurm-wlm-mysql-plugin mariadb-server)
    fi
    for package in "${wanted[@]}"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q "ok installed" ||
            missing+=("$package")
    done
    [ ${#missing[@]} -eq 0 ] && return
    # policy-rc.d: the packages' own services would start without a configuration
    local policy=/usr/sbin/policy-rc.d made=no
    [ -e $policy ] || { printf '#!/bin/sh\nexit 101\n' >$policy; chmod +x $policy; made=yes; }
    local installed=yes
    apt-get update -qq &&
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
            "${missing[@]}" >/dev/null || installed=no
    if [ $made = yes ]; then rm $policy; fi
    [ $installed = yes ] || fail "apt-get could not install ${missing[*]}"
}

write_configuration() {
    local memory gres=""
    memory=$(awk '/MemTotal/ {print int($2 / 1024 * 0.9)}' /proc/meminfo)
    cat >$conf/slurm.conf <<EOF
$mark
ClusterName=one
SlurmctldHost=$node(127.0.0.1)
SlurmUser=slurm
AuthType=auth/munge
StateSaveLocation=$state/slurmctld
SlurmdSpoolDir=$state/slurmd
SlurmctldPidFile=$run/slurmctld.pid
SlurmdPidFile=$run/slurmd.pid
SlurmctldLogFile=$logs/slurmctld.log
SlurmdLogFile=$logs/slurmd.log
# Processes are followed by their parents: control groups would need systemd.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
# Cores and memory are shared out among jobs; by default a job gets the whole node.
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
# A job that requests more than is available is refused at once; by default it would wait for ever.
EnforcePartLimits=ALL
# A job that takes more memory than it asked for is killed, as control groups do on a cluster.
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
JobAcctGatherParams=OverMemoryKill
# A node that went away is used again once it is back.
ReturnToService=2
EOF
    if [ "$accounting" = yes ]; then
        cat >>$conf/slurm.conf <<EOF
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
EOF
        install -m 600 -o slurm -g slurm /dev/null $conf/slurmdbd.conf
        cat >$conf/slurmdbd.conf <<EOF
$mark
AuthType=auth/munge
DbdHost=localhost
SlurmUser=slurm
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
PidFile=$run/slurmdbd.pid
LogFile=$logs/slurmdbd.log
EOF
    fi
    rm -f $conf/gres.conf
    if [ "$gpus" -gt 0 ]; then
        echo "GresTypes=gpu" >>$conf/slurm.conf
        # slurmd wants a device file for each; plain files will do, as nothing opens them
        local number
        for ((number = 0; number < gpus; number++)); do touch "$state/slurmd/gpu$number"; done
        echo "NodeName=$node Name=gpu File=$state/slurmd/gpu[0-$((gpus - 1))]" >$conf/gres.conf
        gres="Gres=gpu:$gpus"
    fi
    cat >>$conf/slurm.conf <<EOF
NodeName=$node NodeAddr=127.0.0.1 CPUs=$(nproc) RealMemory=$memory $gres
PartitionName=main Nodes=$node Default=YES
EOF
}

start_munge() {
    munge -n >/dev/null 2>&1 && return
    install -d -o munge -g munge /run/munge /var/log/munge
    [ -s /etc/munge/munge.key ] || runuser -u munge -- mungekey -c
    runuser -u munge -- /usr/sbin/munged
    touch $run/munge-is-ours
    wait_for 10 munge munge -n
}

start_accounting() {
    if ! mysqladmin ping >/dev/null 2>&1; then
        install -d -o mysql -g mysql /run/mysqld
        # slurmdbd asks for 900 seconds and warns of less
        setsid mariadbd --user=mysql --skip-networking --innodb-lock-wait-timeout=900 \
            >$logs/mariadb.log 2>&1 </dev/null &
        echo $! >$run/mariadb.pid
        wait_for 60 MariaDB mysqladmin ping
    fi
    mysql -e "CREATE DATABASE IF NOT EXISTS slurm_acct_db;
              CREATE USER IF NOT EXISTS slurm@localhost IDENTIFIED VIA unix_socket;
              GRANT ALL ON slurm_acct_db.* TO slurm@localhost;"
    runuser -u slurm -- /usr/sbin/slurmdbd
    wait_for 60 slurmdbd sacctmgr -n show cluster
    sacctmgr -i add cluster one >/dev/null 2>&1 || true # there already
}

up() {
    accounting=yes gpus=0
    while [ $# -gt 0 ]; do
        case $1 in
        --no-accounting) accounting=no ;;
        --gpus) shift; gpus=${1:?a number} ;;
        *) fail "unknown option $1" ;;
        esac
        shift
    done
    command -v apt-get >/dev/null || fail "needs Debian, or another with its packages of Slurm"
    [ "$(id -u)" -eq 0 ] || fail "needs root: it installs packages and starts services"
    if [ -e $conf/slurm.conf ] && ! grep -qxF "$mark" $conf/slurm.conf; then
        fail "$conf/slurm.conf is not of this script; it is left alone"
    fi
    down # what runs may have been started with other options
    install_packages
    install -d $conf $run $logs $state
    install -d -o slurm -g slurm $run $logs $state/slurmctld
    install -d $state/slurmd
    write_configuration
    start_munge
    if [ "$accounting" = yes ]; then start_accounting; fi
    runuser -u slurm -- /usr/sbin/slurmctld
    wait_for 20 slurmctld scontrol ping
    /usr/sbin/slurmd -N "$node"
    # once a node has registered badly, it stays drained until it is told otherwise
    wait_for 20 slurmd sh -c "scontrol update NodeName=$node State=RESUME; sinfo -h -o %T | grep -qx idle"
    status
}

down() {
    local service pid
    for service in slurmd slurmctld slurmdbd mariadb; do
        [ -s $run/$service.pid ] || continue
        pid=$(cat $run/$service.pid)
        kill "$pid" 2>/dev/null || true
        # bounded: what does not end by itself in half a minute is left to its owner
        timeout 30 tail --pid="$pid" -f /dev/null || true
        rm -f $run/$service.pid
    done
    if [ -e $run/munge-is-ours ]; then
        pid=$(cat /run/munge/munged.pid 2>/dev/null) && kill "$pid" || true
        rm -f $run/munge-is-ours
    fi
    # With it, Slurm's commands, which the plugin runs at each start of Snakemake, would wait 10 s.
    if grep -sqxF "$mark" $conf/slurm.conf; then rm $conf/slurm.conf; fi
}

status() {
    sinfo -o "%n %c cores, %m MB, %G, %T" || fail "no Slurm answers. Start one: $0 up"
    scontrol show config | grep -E "^(SLURM_VERSION|AccountingStorageType) "
}

case "${1:-}" in
up) shift; up "$@" ;;
down) down ;;
status) status ;;
*) sed -n '2,14s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
