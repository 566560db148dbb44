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
    ['HOST_LOKED', 'the code HOST_LOKED is unknown. Did you mean HOST_LOCKED? [EXPLAIN_UNKNOWN_CODE]\n'],
    [
      'maxPods',
      'the code maxPods is unknown. To list all codes, run kubeletadm explain. For fields and flags of kubelets, run kubeletadm config explain maxPods. [EXPLAIN_UNKNOWN_CODE]\n',
    ],
    ['NO_SUCH_CODE', 'the code NO_SUCH_CODE is unknown. To list all codes, run kubeletadm explain. [EXPLAIN_UNKNOWN_CODE]\n'],
  ])('refuses %s', async (name, message) => {
    expect(await runCommand(['explain', name])).toEqual({ code: 2, stdout: '', stderr: message });
  });
});
