import { describe, expect, it } from 'vitest';
import { runCommand } from '../../support/run-cli.ts';

describe('explain', () => {
  it('prints cause and fix of a code', async () => {
    const { code, stdout, stderr } = await runCommand(['explain', '[AGENT_DOWN]']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toBe(`CODE:     AGENT_DOWN
SYMPTOM:  \`dynamic inspect\` reports that the agent does not run; the Node keeps its
          previous configuration.
CAUSE:    The systemd unit of the agent is stopped, failed or not installed.
FIX:      Run:

  ssh HOST journalctl -u kubeletadm-agent -n 50
  kubeletadm dynamic inspect HOST --repair          # start the agent
  kubeletadm dynamic enable HOST                    # install the agent again

See docs/troubleshooting.md#agent_down
`);
  });

  it('prints a document', async () => {
    const { stdout } = await runCommand(['explain', 'Port-10250', '-o', 'json']);
    expect(JSON.parse(stdout)).toMatchObject({
      kind: 'ProblemExplanation',
      codes: ['Port'],
      page: 'docs/problems-cluster.md#preflight-checks',
    });
  });

  it('lists codes', async () => {
    const all = (await runCommand(['explain'])).stdout.trimEnd().split('\n');
    expect(all.length).toBeGreaterThan(350);
    const part = (await runCommand(['explain', 'host_key_re'])).stdout;
    expect(part).toBe('CODE              CAUSE\nHOST_KEY_REVOKED  The key of the host is revoked.\n');
  });

  it.each([
    ['maxPods', 'FIELD: maxPods <int32>'],
    // The preflight check has a capital.
    ['port', 'FIELD: port <int32>'],
    ['evictionHard[memory.available]', 'FIELD: evictionHard'],
    ['--node-labels', 'FLAG: --node-labels'],
    ['NodeSwap', 'FEATURE GATE: NodeSwap'],
    ['Swap', 'CODE:   Swap\n'],
    ['host_locked', 'CODE:     HOST_LOCKED\n'],
  ])('explains %s', async (word, text) => {
    const { code, stdout } = await runCommand(['explain', word]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining(text) });
  });

  it('lists the names of kubelets and the codes that contain a word', async () => {
    const { stdout } = await runCommand(['explain', 'swap']);
    expect(stdout).toContain('Names of kubelet 1.36 that contain swap:\n');
    expect(stdout).toContain('\nCodes that contain swap:\n\nCODE             CAUSE\nSWAP_COMES_BACK  ');
    const document = JSON.parse((await runCommand(['explain', 'swap', '-o', 'json'])).stdout);
    expect(document).toMatchObject({
      kind: 'Matches',
      featureGates: [{ name: 'NodeSwap' }],
      problems: [{ code: 'SWAP_COMES_BACK' }, { code: 'Swap' }],
    });
  });

  it('explains a field of another kubelet version', async () => {
    const { stdout } = await runCommand(['explain', 'failCgroupV1', '--kubernetes-version', '1.30']);
    expect(stdout).toContain('kubelet 1.30');
  });

  it('reads a host or a Node with the command line of node explain', async () => {
    const services = () => ({
      connectCluster: () => {
        throw new Error('cluster');
      },
    });
    for (const argv of [
      ['explain', 'node/n1', 'maxPods'],
      ['explain', 'node/n1'],
    ]) {
      const [word, node] = [await runCommand(argv, { services }), await runCommand(['node', ...argv], { services })];
      expect(word.code).not.toBe(0);
      expect(word).toEqual(node);
    }
  });

  it.each([
    ['HOST_LOKED', 'the code HOST_LOKED is unknown. Did you mean HOST_LOCKED? [EXPLAIN_UNKNOWN_CODE]\n'],
    ['NO_SUCH_CODE', 'the code NO_SUCH_CODE is unknown. To list all codes, run kubeletadm explain. [EXPLAIN_UNKNOWN_CODE]\n'],
    [
      'maxPodz',
      'maxPodz is neither a code nor a field, flag or feature gate of the kubelet. Did you mean maxPods? [EXPLAIN_UNKNOWN_NAME]\n',
    ],
    [
      'zzzqq',
      'zzzqq is neither a code nor a field, flag or feature gate of the kubelet. For the configuration of a host or a Node, run kubeletadm explain host/zzzqq or node/zzzqq. [EXPLAIN_UNKNOWN_NAME]\n',
    ],
    [
      'node1',
      'node1 is neither a code nor a field, flag or feature gate of the kubelet. Did you mean authorization.mode? For the configuration of a host or a Node, run kubeletadm explain host/node1 or node/node1. [EXPLAIN_UNKNOWN_NAME]\n',
    ],
    ['--nodeip', 'no kubelet version has the flag --nodeip. Did you mean --node-ip? [EXPLAIN_UNKNOWN_NAME]\n'],
    ['HOST_LOCKED --outptu json', 'unknown option --outptu for explain. See kubeletadm explain --help. [USAGE]\n'],
  ])('refuses %s', async (words, message) => {
    expect(await runCommand(['explain', ...words.split(' ')])).toEqual({ code: 2, stdout: '', stderr: message });
  });
});
