import { describe, expect, it } from 'vitest';
import { formatProblem } from '../../../../src/base/errors.ts';
import { criSocket } from '../../../../src/kubeadm/config/rules.ts';

const verdict = (socket: string): string => {
  const problem = criSocket(socket);
  return problem === null ? 'valid' : `${problem.severity ?? 'error'}: ${formatProblem(problem)}`;
};

describe('criSocket', () => {
  it.each([
    ['unix://var/run/crio/crio.sock', 'Use unix:///var/run/crio/crio.sock.'],
    ['unix://run/containerd/containerd.sock', 'Use unix:///run/containerd/containerd.sock.'],
    ['unix:run/containerd/containerd.sock', 'Use unix:///run/containerd/containerd.sock.'],
    ['UNIX:///run/containerd/containerd.sock', 'Use unix:///run/containerd/containerd.sock.'],
    ['unix//run/x.sock', 'Use unix:///run/x.sock.'],
    ['run/crio/crio.sock', 'Use unix:///run/crio/crio.sock.'],
    ['containerd', 'Use unix:///var/run/containerd/containerd.sock.'],
    ['cri-o', 'Use unix:///var/run/crio/crio.sock.'],
    ['docker', 'Use unix:///var/run/cri-dockerd.sock.'],
    ['tcp://192.0.2.1:2375', 'Use a URL such as unix:///var/run/containerd/containerd.sock.'],
    ['unix:///run/x\n.sock', 'Use a URL such as unix:///var/run/containerd/containerd.sock.'],
  ])('gives the corrected value of %j', (socket, hint) => {
    expect(verdict(socket)).toBe(`error: ${JSON.stringify(socket)} is not the URL of a unix socket. ${hint} [CONFIG_INVALID_SOCKET]`);
  });

  it.each([
    ['/var/run/dockershim.sock', 'dockershim was removed in Kubernetes 1.24'],
    ['unix:///var/run/dockershim.sock', 'dockershim was removed in Kubernetes 1.24'],
    ['unix:///var/run/docker.sock', 'Docker does not implement the CRI'],
  ])('warns about the dead socket %s', (socket, reason) => {
    expect(verdict(socket)).toMatch(
      new RegExp(`^warning: "${socket}" is not the socket of a container runtime: ${reason}\\. .*\\[CONFIG_DEAD_SOCKET\\]$`),
    );
  });

  it('accepts a path with a warning that has the URL', () => {
    expect(verdict('/run/x.sock')).toBe(
      'warning: "/run/x.sock" has no scheme: using unix:///run/x.sock. Use unix:///run/x.sock. [CONFIG_SOCKET_WITHOUT_SCHEME]',
    );
    expect(verdict('unix:///var/run/crio/crio.sock')).toBe('valid');
  });
});
