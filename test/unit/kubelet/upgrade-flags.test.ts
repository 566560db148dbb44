import { describe, expect, it } from 'vitest';
import { loadCatalogue } from '../../../src/kubelet/catalogue/load-catalogue.ts';
import { readFlagsEnv, renderFlagsEnv, upgradeFlags } from '../../../src/kubelet/flags/flags-env.ts';

const catalogue = await loadCatalogue();
const upgrade = (line: string, minor: number, moveSocket = false) =>
  upgradeFlags(`KUBELET_KUBEADM_ARGS="${line}"\n`, { minor, catalogue, moveSocket });
const SOCKET = '--container-runtime-endpoint=unix:///run/crio/crio.sock';
const names = (flags: readonly { readonly name: string }[]) => flags.map(({ name }) => name);

describe('kubeadm-flags.env of an upgraded node', () => {
  it.each([
    ['is unchanged', '--node-ip=10.0.0.4', 36, false, { kept: ['node-ip'], dropped: [], changed: false }],
    ['loses the socket, which moves to the configuration', `${SOCKET} --v=2`, 36, true, { kept: ['v'], dropped: [], changed: true }],
    [
      'keeps the socket of an old kubelet',
      `${SOCKET} --v=2`,
      26,
      false,
      { kept: ['container-runtime-endpoint', 'v'], dropped: [], changed: false },
    ],
    [
      'loses flags that the kubelet no longer has',
      '--pod-infra-container-image=pause:3.10 --v=2',
      35,
      false,
      { kept: ['v'], dropped: ['pod-infra-container-image'], changed: true },
    ],
    [
      'keeps flags that the kubelet still has',
      '--pod-infra-container-image=pause:3.10 --v=2',
      34,
      false,
      { kept: ['pod-infra-container-image', 'v'], dropped: [], changed: false },
    ],
    [
      'loses --container-runtime=remote with 1.27',
      '--container-runtime=remote --network-plugin=cni',
      27,
      false,
      { kept: [], dropped: ['container-runtime', 'network-plugin'], changed: true },
    ],
    ['keeps the order and duplicates', '--v=4 --node-ip=::1 --v=2', 36, true, { kept: ['v', 'node-ip', 'v'], dropped: [], changed: false }],
  ] as const)('%s', (_, line, minor, moveSocket, expected) => {
    const { flags, dropped, changed } = upgrade(line, minor, moveSocket);
    expect({ kept: names(flags), dropped: names(dropped), changed }).toEqual(expected);
  });

  it('returns the last socket', () => {
    expect(upgrade(`--container-runtime-endpoint=unix:///a ${SOCKET}`, 36, true).criSocket).toBe('unix:///run/crio/crio.sock');
    expect(upgrade('', 36, true).criSocket).toBeNull();
    expect(upgradeFlags('', { minor: 36, catalogue, moveSocket: true })).toEqual({
      flags: [],
      dropped: [],
      criSocket: null,
      changed: false,
    });
  });

  it.each([
    String.raw`--node-labels=x=\"q r\" --v=2`,
    '--node-labels=a=b --register-with-taints=k=v:NoSchedule',
    "--node-labels='x y' --v=2",
  ])('is read by systemd unchanged after rewriting: %s', (line) => {
    const before = readFlagsEnv(`KUBELET_KUBEADM_ARGS="${line} ${SOCKET}"\n`);
    const written = renderFlagsEnv(upgrade(`${line} ${SOCKET}`, 36, true).flags);
    expect(readFlagsEnv(written)).toEqual(before.slice(0, -1));
  });
});
