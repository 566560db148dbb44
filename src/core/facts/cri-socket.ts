import { defineFact } from './fact.ts';

/** Where kubeadm looks for a container runtime, in its order (kubeadm 1.36 constants). */
export const KNOWN_CRI_SOCKETS = [
  'unix:///var/run/containerd/containerd.sock',
  'unix:///var/run/crio/crio.sock',
  'unix:///var/run/cri-dockerd.sock',
] as const;

/** What kubeadm takes when it finds none. */
export const DEFAULT_CRI_SOCKET = KNOWN_CRI_SOCKETS[0];

/** The runtime sockets that are there. */
export const criSockets = defineFact(
  {
    containerd: { kind: 'file', path: '/var/run/containerd/containerd.sock', content: false },
    crio: { kind: 'file', path: '/var/run/crio/crio.sock', content: false },
    criDockerd: { kind: 'file', path: '/var/run/cri-dockerd.sock', content: false },
  },
  ({ containerd, crio, criDockerd }): readonly string[] =>
    KNOWN_CRI_SOCKETS.filter((_, i) => [containerd, crio, criDockerd][i]?.type === 'socket'),
);
