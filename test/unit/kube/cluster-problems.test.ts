import { describe, expect, it } from 'vitest';
import { clusterRefused } from '../../../src/kube/cluster-problems.ts';

const kubeconfig = { file: 'my.conf', context: 'lab', user: 'eve', origin: 'fleet.yaml:5:15' };
const hintOf = (message: string, options: Partial<Parameters<typeof clusterRefused>[1]> = {}): string | undefined =>
  clusterRefused('list Nodes', { httpStatus: 403, message, kubeconfig, ...options }).problems[0]?.hint;

describe('a denied request', () => {
  const denied = 'nodes is forbidden: User "eve" cannot list resource "nodes" in API group "" at the cluster scope';

  it('names the kubeconfig and a command that checks the permission', () => {
    expect(hintOf(denied)).toBe(
      'Grant the permission to the user of the kubeconfig my.conf (context "lab", from fleet.yaml:5:15), or pass the kubeconfig of an administrator with --kubeconfig. To check, run kubectl auth can-i list nodes --kubeconfig my.conf --context lab',
    );
    const leases = 'x is forbidden: User "e" cannot get resource "leases" in API group "coordination.k8s.io" in the namespace "my-ns"';
    expect(hintOf(leases)).toMatch(/ can-i get leases\.coordination\.k8s\.io -n my-ns --kubeconfig my\.conf --context lab$/);
    // The files of KUBECONFIG are merged as by kubectl.
    const merged = { ...kubeconfig, file: 'KUBECONFIG', origin: 'KUBECONFIG' };
    expect(hintOf(denied, { kubeconfig: merged })).toMatch(/ can-i list nodes --context lab$/);
  });

  it('reports a user without credentials', () => {
    expect(hintOf(denied.replace('"eve"', '"system:anonymous"'))).toBe(
      'The user "eve" in the kubeconfig my.conf (context "lab", from fleet.yaml:5:15) has no credentials. Pass another kubeconfig with --kubeconfig',
    );
  });

  it('has no hint for other rejections, and for a kubeconfig that the operator did not name', () => {
    expect(hintOf('namespaces "default" is forbidden: this namespace may not be deleted')).toBeUndefined();
    expect(hintOf(denied, { kubeconfig: null })).toBeUndefined();
  });
});
