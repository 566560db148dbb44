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

/** The path of `unix:///run/x.sock` and `unix:/run/x.sock`: `/run/x.sock`. */
function socketPath(socket: string): string {
  return socket.replace(/^unix:(?:\/\/)?/, '');
}
