import { defineFact, type Fact } from '../../host/facts/fact.ts';
import type { FactQuery, FileFact } from '../../host/facts/query.ts';

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
function socketPath(socket: string): string {
  return socket.replace(/^unix:(?:\/\/)?/, '');
}
