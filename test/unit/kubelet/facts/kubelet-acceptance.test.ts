import { describe, expect, it } from 'vitest';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';
import { flagsForQuery, kubeletAcceptance } from '../../../../src/kubelet/facts/kubelet-acceptance.ts';
import { commandFailure, commandOutput, parseFact } from '../../../support/answers.ts';

const catalogue = await loadCatalogue();
const failed = (message: string): string => `E1121 19:39:44.486318   30208 run.go:72] "command failed" err=${JSON.stringify(message)}\n`;
const ON_CGROUP_V1 =
  'kubelet is configured to not run on a host using cgroup v1. cgroup v1 support is unsupported and will be removed in a future release';

describe('kubeletAcceptance', () => {
  const fact = kubeletAcceptance('/usr/bin/kubelet', 'x', []);

  it.each<[string, string, unknown]>([
    [
      'accepted, with warnings',
      `W1121 19:39:45.288074   30278 feature_gate.go:420] unrecognized feature gate: Nope\n${failed('failed to run Kubelet: cannot exit on lock file contention: no lock file specified')}`,
      { verdict: 'accepted' },
    ],
    [
      'accepted, in JSON',
      '{"ts":1,"caller":"app/run.go:72","msg":"command failed","err":"failed to run Kubelet: cannot exit on lock file contention: no lock file specified"}\n',
      { verdict: 'accepted' },
    ],
    [
      'refused by validation',
      failed(
        `failed to validate kubelet configuration, error: [invalid configuration: maxPods (--max-pods) -1 must not be a negative number, ${ON_CGROUP_V1}], path: &TypeMeta{Kind:,APIVersion:,}`,
      ),
      {
        verdict: 'refused',
        isHost: false,
        cause: expect.stringMatching(/^the kubelet refuses its configuration: maxPods .*number; kubelet is/),
      },
    ],
    [
      'refused because of the host',
      failed(`failed to validate kubelet configuration, error: ${ON_CGROUP_V1}, path: &TypeMeta{Kind:,APIVersion:,}`),
      { verdict: 'refused', isHost: true, cause: 'the host uses cgroup v1, which this kubelet refuses' },
    ],
    [
      'refused with an unknown message',
      failed('failed to construct kubelet dependencies: the moon is full'),
      { verdict: 'refused', cause: 'failed to construct kubelet dependencies: the moon is full' },
    ],
    [
      'a panic',
      'panic: unable to parse feature gates: unrecognized feature gate: Nope\n\ngoroutine 1 [running]:\n',
      { verdict: 'refused', cause: 'this kubelet does not know the feature gate Nope' },
    ],
    ['silent', '', { verdict: 'unknown', why: 'no output within 20 s' }],
    ['cannot be started', 'timeout: kubelet: Permission denied\n', { verdict: 'unknown', why: 'timeout: kubelet: Permission denied' }],
  ])('%s', (_, output, expected) => {
    expect(parseFact(fact, { reported: commandOutput(output) })).toMatchObject(expected as object);
  });

  it('is unknown when the host cannot store the files of the query', () => {
    const reported = commandFailure(74, 'cat: write error: No space left on device\n');
    expect(parseFact(fact, { reported })).toEqual({
      verdict: 'unknown',
      why: 'the host cannot store temporary files: cat: write error: No space left on device',
    });
  });
});

describe('flagsForQuery', () => {
  it('removes flags that must not be used in the check, in each notation', () => {
    const words = [
      ...[
        '--config=/x',
        '--client-ca-file=/ca',
        '--cert-dir',
        '/pki',
        '--root-dir=/r',
        '--lock-file=/l',
        '--lock_file=/l',
        '--exit-on-lock-contention=false',
      ],
      ...['--kubeconfig=/k', '--bootstrap-kubeconfig=/b', '--version', '-h', '--log-file=/f', '--logtostderr=false'],
      ...['--node-ip=10.0.0.1', '--max-pods', '5', '-v4', '--feature-gates=A=true,B=false', '--config-dir=/d'],
    ];
    expect(flagsForQuery(words, { catalogue, minor: 30 })).toEqual([
      { name: 'node-ip', value: '10.0.0.1' },
      { name: 'max-pods', value: '5' },
      { name: 'v', value: '4' },
      { name: 'feature-gates', value: 'A=true,B=false' },
      { name: 'config-dir', value: '/d' },
    ]);
  });
});
