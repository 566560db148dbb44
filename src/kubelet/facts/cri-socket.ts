import { entryOf, parseSource } from '../../codec/source.ts';
import { countPodProcesses, listPods, listRunningContainers } from '../../host/cri/runtime-commands.ts';
import { defineFact, type Fact } from '../../host/facts/fact.ts';
import type { CommandFact, FactQuery, FileFact } from '../../host/facts/query.ts';
import { INSTANCE_CONFIG } from '../../kube/well-known.ts';

/** Sockets that kubeadm checks for a container runtime, in its order (kubeadm 1.36 constants). */
export const KNOWN_CRI_SOCKETS = [
  'unix:///var/run/containerd/containerd.sock',
  'unix:///var/run/crio/crio.sock',
  'unix:///var/run/cri-dockerd.sock',
] as const;

/** kubeadm's default if no socket exists. */
export const DEFAULT_CRI_SOCKET = KNOWN_CRI_SOCKETS[0];

/**
 * The existing runtime sockets among those known to kubeadm and the configured one. A socket that the user may not
 * look up counts as absent (kubeadm 1.36 runtime.isExistingSocket).
 * @param declared with its scheme; null: not configured
 */
export function criSockets(declared: string | null): Fact<readonly string[]> {
  const inspected = [...new Set([...KNOWN_CRI_SOCKETS, ...(declared === null ? [] : [declared])])];
  const queries: Record<string, FactQuery> = {};
  for (const socket of inspected) queries[socket] = { kind: 'file', path: socketPath(socket), content: false, denied: 'absent' };
  return defineFact(queries, (answers) => inspected.filter((socket) => (answers[socket] as FileFact | null)?.type === 'socket'));
}

/** The container runtime socket in the text of instance-config.yaml; null: none. */
export function instanceSocket(instanceConfig: string): string | null {
  const root = parseSource(instanceConfig, INSTANCE_CONFIG).documents[0]?.root ?? null;
  const value = entryOf(root, 'containerRuntimeEndpoint')?.value;
  return value?.kind === 'scalar' && typeof value.scalar.value === 'string' && value.scalar.value !== '' ? value.scalar.value : null;
}

/** Sockets by name of file that no container runtime serves for kubelets from 1.24 on. */
const DEAD_SOCKETS: Readonly<Record<string, string>> = {
  'dockershim.sock': 'dockershim was removed in Kubernetes 1.24',
  'docker.sock': 'Docker does not implement the CRI',
  'frakti.sock': 'the development of frakti has ended',
  'rktlet.sock': 'the development of rktlet has ended',
};

/** A clause about a socket that cannot be that of a container runtime; null: it may be one. */
export function deadSocketReason(socket: string): string | null {
  const name = socket.slice(socket.lastIndexOf('/') + 1);
  return (Object.hasOwn(DEAD_SOCKETS, name) ? DEAD_SOCKETS[name] : undefined) ?? null;
}

const RUNTIME_NAMES: Readonly<Record<string, (typeof KNOWN_CRI_SOCKETS)[number]>> = {
  containerd: KNOWN_CRI_SOCKETS[0],
  crio: KNOWN_CRI_SOCKETS[1],
  docker: KNOWN_CRI_SOCKETS[2],
  'cri-o': KNOWN_CRI_SOCKETS[1],
  'cri-dockerd': KNOWN_CRI_SOCKETS[2],
};

/**
 * The URL that an invalid socket was probably meant to be: `unix:///run/x.sock` for `unix://run/x.sock` and `run/x.sock`, or
 * the socket of a runtime for its name.
 */
export function correctedSocket(socket: string): string | null {
  const named = RUNTIME_NAMES[socket.toLowerCase()];
  if (named !== undefined) return named;
  const path = /^(?:unix:?)?\/*((?:[\w.-]+\/)+[\w.-]+)$/i.exec(socket)?.[1];
  return path === undefined ? null : `unix:///${path}`;
}

/** The path of `unix:///run/x.sock` and `unix:/run/x.sock`: `/run/x.sock`. */
export function socketPath(socket: string): string {
  return socket.replace(/^unix:(?:\/\/)?/, '');
}

/**
 * How the runtime behind a CRI socket answers the CRI v1 API. `no-cri`: it serves other APIs only. `not-listening`: the
 * socket is left from a stopped runtime. `mute`: it accepts the connection and does not answer. `failing`: it answers
 * with an error.
 */
export type CriState =
  | { readonly kind: 'served' | 'no-cri' | 'not-listening' | 'mute' }
  | { readonly kind: 'failing'; readonly message: string };

/** Seconds for an answer, more than the two of kubeadm 1.36 (cmd/kubeadm/app/util/runtime). */
export const CRI_TIMEOUT_SECONDS = 5;

/**
 * Calls the method $2 of runtime.v1.RuntimeService: a gRPC call is a POST with HTTP/2, and its message without fields has five
 * bytes. crictl with the command $3 is used where curl is missing or has no HTTP/2; old versions of crictl ask for another API.
 */
const SCRIPT = `p=\${1#unix:}; p=\${p#//}; [ -S "$p" ] || exit 3
m=application/grpc; u=http://localhost/runtime.v1.RuntimeService/$2
if command -v curl >/dev/null 2>&1; then
  printf '\\0\\0\\0\\0\\0' | curl -sS -m ${CRI_TIMEOUT_SECONDS} --http2-prior-knowledge --unix-socket "$p" -H "content-type: $m" -H 'te: trailers' --data-binary @- -D - -o /dev/null "$u" 2>&1
  c=$?; echo "curl-exit: $c"; case $c in 0|7|28) exit 0;; esac
fi
command -v crictl >/dev/null 2>&1 || exit 0
crictl --runtime-endpoint "$1" --timeout ${CRI_TIMEOUT_SECONDS}s "$3" 2>&1 && echo 'grpc-status: 0'; exit 0`;

/** Calls a method of the runtime behind a CRI socket; `grpcStatus` reads the output. Exit code 3: no such socket. */
export function criCall(criSocket: string, method: 'Version' | 'RuntimeConfig'): FactQuery {
  const argv = ['sh', '-c', SCRIPT, 'sh', criSocket, method, method === 'Version' ? 'version' : 'runtime-config'];
  return { kind: 'command', argv, isParallel: true };
}

/** `0`: OK; `12`: the runtime does not have the method. Undefined: no answer. */
export function grpcStatus(stdout: string): string | undefined {
  return /^grpc-status: (\d{1,3})\r?$/m.exec(stdout)?.[1];
}

/** Whether the runtime behind a CRI socket serves the CRI v1 API; null: no such socket, or it cannot be asked. */
export function criState(criSocket: string): Fact<CriState | null> {
  return defineFact({ asked: criCall(criSocket, 'Version') }, ({ asked }) => readCriState(asked as CommandFact));
}

function readCriState({ exitCode, stdout }: CommandFact): CriState | null {
  if (exitCode !== 0) return null;
  const status = grpcStatus(stdout);
  if (status === '0') return { kind: 'served' };
  if (status === '12' || /unknown service runtime\.v1\.RuntimeService/.test(stdout)) return { kind: 'no-cri' };
  if (/^curl-exit: 7$|connect: (?:connection refused|no such file)/m.test(stdout)) return { kind: 'not-listening' };
  if (/^curl-exit: 28$|DeadlineExceeded|deadline exceeded/m.test(stdout)) return { kind: 'mute' };
  const message = /^grpc-message: ([^\r\n]{1,500})/m.exec(stdout)?.[1];
  return status === undefined ? null : { kind: 'failing', message: message ?? `gRPC status ${status}` };
}

/**
 * IDs of the pods known to a container runtime.
 * @returns null: the runtime does not respond
 */
export function podList(criSocket: string): Fact<readonly string[] | null> {
  return defineFact({ list: { kind: 'command', argv: listPods(criSocket) } }, ({ list }) =>
    list.exitCode === 0 ? list.stdout.split('\n').filter(Boolean) : null,
  );
}

/** IDs of the running containers of a component in kube-system; null: the runtime does not respond. */
export function runningContainers(criSocket: string, component: string): Fact<readonly string[] | null> {
  return defineFact({ list: { kind: 'command', argv: listRunningContainers(criSocket, component) } }, ({ list }) =>
    list.exitCode === 0 ? list.stdout.split('\n').filter(Boolean) : null,
  );
}

/** Number of pod processes, from their cgroups; 0 also if unknown. */
export const podProcesses = defineFact({ count: { kind: 'command', argv: countPodProcesses() } }, ({ count }) =>
  count.exitCode === 0 && /^\d{1,9}$/.test(count.stdout.trim()) ? Number(count.stdout) : 0,
);
