import { describe, expect, it } from 'vitest';
import { type KubeletFlagsInput, kubeletFlagFindings } from '../../../../src/kubeadm/preflight/kubelet-flags.ts';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';

const INPUT: KubeletFlagsInput = {
  flags: [],
  hostWords: [],
  hostFile: '/etc/default/kubelet',
  nodeName: 'w1',
  minor: 36,
  assumed: false,
  catalogue: await loadCatalogue(),
};
const labels = (value: string): Partial<KubeletFlagsInput> => ({ flags: [{ name: 'node-labels', value }] });
const host = (...hostWords: string[]): Partial<KubeletFlagsInput> => ({ hostWords });
const FILE = 'KUBELET_EXTRA_ARGS in /etc/default/kubelet';

describe('kubeletFlagFindings', () => {
  it.each<[string, Partial<KubeletFlagsInput>, readonly string[]]>([
    ['nothing', {}, []],
    ['existing flags of the kubelet', host('--v=4', '--node-ip', '10.0.0.1', '-v5'), []],
    ['a flag that never existed', host('--nonsense=1'), [`${FILE}: a 1.36 kubelet has no flag --nonsense`]],
    [
      'a removed flag',
      host('--container-runtime=remote'),
      [`${FILE}: a 1.36 kubelet has no flag --container-runtime: the flag was removed in 1.27`],
    ],
    ['a word that is not a flag', host('--v=4', 'loose'), [`${FILE}: "loose" is not a flag, and the kubelet takes no arguments`]],
    ['a value of another type', host('--max-pods=lots'), [`${FILE}: --max-pods of a 1.36 kubelet expects an integer, not "lots"`]],
    ['the node name', host('--hostname-override=w1'), []],
    ['another node name', host('--hostname-override=w2'), [`${FILE}: hostname-override is w2, but the node's name is w1`]],
    ['labels', labels('pool=edge,example.com/a=,node.kubernetes.io/x=1,a.node.kubernetes.io/x=1,kubernetes.io/os=linux'), []],
    [
      'a reserved label',
      labels('pool=edge,node-role.kubernetes.io/worker='),
      [
        'node-labels: a kubelet must not set the label node-role.kubernetes.io/worker on its own Node (restricted prefix); the kubelet would exit at startup',
      ],
    ],
    [
      'a reserved label in the file of the host',
      host('--node-labels=k8s.io/x=1'),
      [`${FILE}: a kubelet must not set the label k8s.io/x on its own Node (restricted prefix); the kubelet would exit at startup`],
    ],
    ['a label without a value', labels('pool'), ['node-labels: "pool" is not key=value; the kubelet would exit at startup']],
    ['an invalid label key', labels('-a=b'), ['node-labels: "-a" is not a valid label key; the kubelet would exit at startup']],
    ['an invalid label value', labels('a=b c'), ['node-labels: "b c" is not a valid value of label a; the kubelet would exit at startup']],
  ])('%s', (_, change, messages) => {
    expect(kubeletFlagFindings({ ...INPUT, ...change }).map(({ message }) => message)).toEqual(messages);
  });

  it.each([
    [
      'node-role.kubernetes.io/worker=',
      /^Remove the label from the flag\. To set the label, pass --kubeconfig admin\.conf to join, or run kubectl label node$/,
    ],
    ['pool', /^Write labels like pool=edge,zone=a$/],
  ])('explains how to set the label %s', (value, hint) => {
    expect(kubeletFlagFindings({ ...INPUT, ...labels(value) }).map((finding) => finding.hint)).toEqual([expect.stringMatching(hint)]);
  });

  it('only warns when the kubelet is not installed yet', () => {
    const severities = (assumed: boolean) =>
      kubeletFlagFindings({ ...INPUT, ...host('--nonsense'), assumed }).map(({ severity }) => severity);
    expect([severities(false), severities(true)]).toEqual([['error'], ['warning']]);
  });
});
