/**
 * Shell commands for the container runtime of a host. kubeadm 1.36 uses CRI directly; here crictl is used, or
 * containerd's ctr if crictl is not installed. Both get the socket; ctr does not work with other runtimes.
 */

/** `$1` is the socket, which is checked first because crictl would wait for it. The lab sets KUBELETADM_ROOT. */
const TOOLS = `p=\${KUBELETADM_ROOT-}\${1#unix://}; s=unix://$p; [ -S "$p" ] || exit 1
has() { command -v "$1" >/dev/null 2>&1; }
cri() { crictl --runtime-endpoint "$s" "$@"; }
ctrd() { ctr --address "$p" --namespace k8s.io "$@"; }
`;

/**
 * Processes in the cgroups of Pods (`kubepods`, `kubepods.slice`, also below a cgroup root of the kubelet),
 * whichever runtime started them; not those of nodes that are containers of this host, which are nested
 * deeper. One find(1) for all directories: cgroup v1 has one for each controller.
 */
const POD_PROCESSES = `pod_processes() { (
  g=\${KUBELETADM_ROOT-}/sys/fs/cgroup
  if [ -f "$g/cgroup.controllers" ]; then set -- "$g"/*kubepods* "$g"/*/*kubepods*; else set -- "$g"/*/*kubepods* "$g"/*/*/*kubepods*; fi
  find "$@" -name cgroup.procs -exec cat {} + 2>/dev/null | sort -u | grep -c .
) || true; }
`;

type Words = readonly [program: string, ...args: string[]];

const words = (script: string, ...args: readonly string[]): Words => ['sh', '-c', script, 'sh', ...args];

/** Prints the images of the runtime: crictl's JSON, or ctr's names, one per line. See `parseImages`. */
export function listImages(criSocket: string): Words {
  return words(`${TOOLS}if has crictl; then cri --timeout 10s images --output json; else ctrd --timeout 10s images ls -q; fi`, criSocket);
}

/** ctr uses the mirrors of containerd's documented directory but no credentials: the kubelet pulls such images. */
export function pullImage(criSocket: string, image: string): Words {
  const script = `${TOOLS}if has crictl; then exec crictl --runtime-endpoint "$s" --timeout 15m pull "$2"; fi
d=/etc/containerd/certs.d; set -- "$2"; [ ! -d $d ] || set -- --hosts-dir $d "$1"
ctrd --timeout 15m images pull "$@" >/dev/null`;
  return words(script, criSocket, fullImageName(image));
}

/** Prints `ctr` for containerd, `podman` for CRI-O, which has the same image store, or nothing. */
export function imageImporter(criSocket: string): Words {
  return words(`${TOOLS}${IMPORTER}importer`, criSocket);
}

const IMPORTER = `importer() {
  if has ctr && ctrd --timeout 10s version >/dev/null 2>&1; then echo ctr
  elif [ "\${p##*/}" = crio.sock ] && has podman; then echo podman; fi
}
`;

/** Imports all images of an archive, an OCI layout or the output of `docker save`, and removes the archive. */
export function importImages(criSocket: string, path: string): Words {
  const script = `${TOOLS}${IMPORTER}case $(importer) in
  ctr) ctrd images import "$2" >/dev/null;;
  podman) podman load --quiet --input "$2" >/dev/null;;
  *) echo 'neither ctr of containerd nor podman of CRI-O can import images' >&2; exit 1;;
esac && rm -f -- "$2"`;
  return words(script, criSocket, path);
}

/** Prints the Pods of the runtime, or with ctr their containers, one per line. */
export function listPods(criSocket: string): Words {
  return words(`${TOOLS}if has crictl; then cri --timeout 10s pods -q; else ctrd --timeout 10s containers ls -q; fi`, criSocket);
}

/**
 * Prints the ids of the containers and sandboxes of a Pod in kube-system that have not stopped; any other
 * exit code than 0: unknown. A process may run without listening on its port. A container that crashes is
 * between two starts most of the time; its sandbox shows that the kubelet will start it again.
 */
export function listLiveContainers(criSocket: string, pod: string): Words {
  const script = `${TOOLS}if has crictl; then
  set -- "$1" --label io.kubernetes.pod.namespace=kube-system --label "io.kubernetes.pod.name=$2"; shift
  cri --timeout 10s pods -q --state ready "$@" || exit 1
  for state in created running unknown; do cri --timeout 10s ps -a -q --state $state "$@" || exit 1; done
else
  ids=$(ctrd --timeout 10s containers ls -q 'labels."io.kubernetes.pod.name"=='"$2"',labels."io.kubernetes.pod.namespace"==kube-system') || exit 1
  tasks=$(ctrd --timeout 10s tasks ls) || exit 1
  for id in $ids; do echo "$tasks" | while read -r task _ state; do [ "$task" != "$id" ] || [ "$state" = STOPPED ] || echo "$id"; done; done
fi`;
  return words(script, criSocket, pod);
}

/** Prints the ids of the running containers of a component in kube-system; any other exit code than 0: unknown. */
export function listRunningContainers(criSocket: string, component: string): Words {
  return words(`${TOOLS}${RUNNING}running "$2"`, criSocket, component);
}

/** Only with the label of the kubelet: containers of the same name in other namespaces are not those of a static Pod. */
const RUNNING = `running() {
  if has crictl; then
    cri --timeout 10s ps -q --state running --label io.kubernetes.pod.namespace=kube-system --label "io.kubernetes.container.name=$1"
  else
    ids=$(ctrd --timeout 10s containers ls -q 'labels."io.kubernetes.container.name"=='"$1"',labels."io.kubernetes.pod.namespace"==kube-system') || return 1
    tasks=$(ctrd --timeout 10s tasks ls) || return 1
    for id in $ids; do echo "$tasks" | while read -r task _ state; do [ "$task" != "$id" ] || [ "$state" != RUNNING ] || echo "$id"; done; done
  fi
}
`;

/** Seconds for a component to exit after SIGTERM, as terminationGracePeriodSeconds of a Pod. */
export const STOP_SECONDS = 30;

/** Stops the running containers of a component: the kubelet starts new ones, because static Pods always restart. */
export function stopContainers(criSocket: string, component: string): Words {
  const script = `${TOOLS}${RUNNING}ids=$(running "$2") || exit 1
for id in $ids; do
  if has crictl; then cri --timeout ${STOP_SECONDS + 10}s stop --timeout ${STOP_SECONDS} "$id" >/dev/null || exit 1
  else ctrd tasks kill --signal SIGTERM "$id" || exit 1; fi
done`;
  return words(script, criSocket, component);
}

/** Also if no container runtime can be queried. */
export function countPodProcesses(): Words {
  return words(`${POD_PROCESSES}pod_processes`);
}

/**
 * Removes all Pods, and waits until no Pod process is left. If one call for all fails, each remaining Pod is
 * tried five times, as in kubeadm. ctr removes only containers: Pod networks remain until the host is
 * restarted.
 * @param mayStay Pods that cannot be removed are no failure
 */
export function removePods(criSocket: string, mayStay: boolean): Words {
  const script = `${TOOLS}${POD_PROCESSES}if has crictl; then pods() { cri pods -q; }; drop() { cri stopp "$@" && cri rmp -f "$@"; }
else pods() { ctrd containers ls -q; }; drop() { ctrd tasks rm -f "$@" >/dev/null 2>&1; ctrd containers rm "$@"; }; fi
all=$(pods)
if [ -n "$all" ]; then
  if drop $all 2>/dev/null; then all=; else some=$(pods) && all=$some; fi
fi
left=
for i in $all; do
  n=1; until drop "$i"; do [ $n -lt 5 ] || { left="$left $i"; break; }; n=$((n+1)); sleep 1; done
done
[ "$2" = 0 ] || exit 0
[ -z "$left" ] || { echo "cannot remove these Pods:$left" >&2; exit 1; }
i=0
while n=$(pod_processes); [ "$n" != 0 ]; do
  [ $i -lt 100 ] || { echo "$n Pod processes are still running" >&2; exit 1; }
  if sleep 0.1 2>/dev/null; then i=$((i+1)); else i=$((i+10)); sleep 1; fi
done`;
  return words(script, criSocket, mayStay ? '1' : '0');
}

/** Prints the last log lines of a component's last container; the kubelet's log files are used if crictl fails. */
export function lastLog(criSocket: string, component: string): Words {
  const script = `${TOOLS}if has crictl; then
  c=$(cri --timeout 5s ps -a --name "^$2$" --last 1 -q) && [ -n "$c" ] && exec crictl --runtime-endpoint "$s" --timeout 5s logs --tail 20 "$c" 2>&1
fi
f=$(ls -t /var/log/pods/kube-system_"$2"-*/"$2"/*.log 2>/dev/null | head -n 1); [ -n "$f" ] && tail -n 20 "$f" | sed 's/^[^ ]* std[a-z]* [FP] //'`;
  return words(script, criSocket, component);
}

const DOCKER_HUB = 'docker.io';

/**
 * Without a registry an image is from Docker Hub, without a tag it is `latest`; a digest replaces the tag.
 * @see github.com/distribution/reference NormalizeNamed, TagNameOnly; github.com/containerd/containerd
 *   ParseDockerRef
 */
export function fullImageName(image: string): string {
  const [before = '', digest] = image.split('@');
  const [, name = before, tag = 'latest'] = /^(.*?)(?::([^/:]+))?$/.exec(before) ?? [];
  const [first = '', ...rest] = name.split('/');
  const hasRegistry = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost' || first.toLowerCase() !== first);
  const registry = hasRegistry && first !== `index.${DOCKER_HUB}` ? first : DOCKER_HUB;
  const path = hasRegistry ? rest.join('/') : name;
  const full = `${registry}/${registry === DOCKER_HUB && !path.includes('/') ? 'library/' : ''}${path}`;
  return digest === undefined ? `${full}:${tag}` : `${full}@${digest}`;
}
