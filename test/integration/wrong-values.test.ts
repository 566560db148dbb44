import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { runCommand } from '../support/run-cli.ts';

const directory = mkdtempSync(join(tmpdir(), 'ka-values-'));
const fleet = join(directory, 'fleet.yaml');
writeFileSync(fleet, 'apiVersion: kubeletadm.dev/v1alpha1\nkind: Fleet\nhosts: [{name: n1, address: 127.0.0.1}]\n');
const payload = join(directory, 'kubelet.yaml');
writeFileSync(payload, 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n');
const state = join(directory, 'state');
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const run = (...argv: readonly string[]) => runCommand(argv, { env: { HOME: directory, XDG_STATE_HOME: state } });

describe('unusable values', () => {
  it.each<[string, readonly string[], string]>([
    [
      'a phase that does not exist',
      ['init', 'phase', 'kubelet-strat'],
      'init has no phase kubelet-strat. Did you mean kubelet-start? [USAGE]',
    ],
    [
      'a phase similar to none',
      ['init', 'phase', 'foo'],
      'init has no phase foo. To list the phases, run kubeletadm init --help --all. [USAGE]',
    ],
    [
      'join without a cluster',
      ['join', '--rootfs', directory, '--node-name', 'n1'],
      'discovery: no discovery method configured. On a control plane, run kubeletadm token create --print-join-command, which prints the complete join command. Or pass --discovery-file, or --config with discovery.bootstrapToken or discovery.file. [CONFIG_MISSING_VALUE]',
    ],
    [
      'a retry without a previous run',
      ['apply', '-f', fleet, '--retry', 'failed'],
      `--retry failed: no earlier apply of ${fleet} is recorded in ${state}/kubeletadm/runs. Run kubeletadm apply without --retry. [USAGE]`,
    ],
    [
      'a fleet file as a saved plan',
      ['apply', fleet],
      `${fleet} is a fleet file, not a saved plan. Apply the fleet file with kubeletadm apply -f ${fleet}. [PLAN_INVALID]`,
    ],
    [
      'a file that is not a plan',
      ['apply', payload],
      `${payload} is not a valid saved plan: not valid JSON. Create a plan with kubeletadm plan --out FILE. [PLAN_INVALID]`,
    ],
    [
      'zero parallel hosts',
      ['apply', '-f', fleet, '--parallel', '0'],
      'apply: option --parallel <hosts>: invalid value "0": must be an integer from 1 to 100000. See kubeletadm apply --help. [USAGE]',
    ],
    [
      'a log verbosity above 10',
      ['version', '-v', '99'],
      'option -v, --v <level>: invalid value "99": must be an integer from 0 to 10. See kubeletadm --help. [USAGE]',
    ],
    [
      'a log verbosity that is not an integer',
      ['version', '-v', '1.5'],
      'option -v, --v <level>: invalid value "1.5": must be an integer from 0 to 10. See kubeletadm --help. [USAGE]',
    ],
    [
      'a lab without hosts',
      ['lab', '--hosts', '0', '--demo'],
      'lab: option --hosts <count>: invalid value "0": must be an integer from 1 to 1000. See kubeletadm lab --help. [USAGE]',
    ],
    [
      'more parallel hosts than a number can hold',
      ['plan', '-f', fleet, '--parallel', '9'.repeat(400)],
      `plan: option --parallel <hosts>: invalid value "${'9'.repeat(400)}": must be an integer from 1 to 100000. See kubeletadm plan --help. [USAGE]`,
    ],
    [
      'a zero connection timeout',
      ['plan', '-f', fleet, '--connect-timeout', '0'],
      'plan: option --connect-timeout <seconds>: invalid value "0": must be an integer from 1 to 86400. See kubeletadm plan --help. [USAGE]',
    ],
    [
      'a command timeout above a day',
      ['fleet', 'exec', '-f', fleet, '--timeout', '2147484', '--', 'true'],
      'fleet exec: option --timeout <seconds>: invalid value "2147484": must be an integer from 1 to 86400. See kubeletadm fleet exec --help. [USAGE]',
    ],
    [
      'a spread above a day',
      ['agent', '--node-name', 'n1', '--spread', '25h'],
      '--spread "25h" is more than 24h. Use a duration such as 10m or 90s. [USAGE]',
    ],
    [
      'too many checkpoints to keep',
      ['agent', '--node-name', 'n1', '--keep', '10000'],
      '--keep "10000" is not an integer from 0 to 9999. For example: --keep=5. [USAGE]',
    ],
    [
      'port 0 of the agent',
      ['agent', '--node-name', 'n1', '--listen', '127.0.0.1:0'],
      '--listen "127.0.0.1:0" is not an address and port. Use an address and port such as 127.0.0.1:10246. [USAGE]',
    ],
    [
      'an empty batch',
      ['apply', '-f', fleet, '--serial', '0'],
      '--serial 0 must be a number of hosts (1 or more) or a percentage (1% to 100%). For example: --serial 5 or --serial 10%. [USAGE]',
    ],
    ['nothing to assign', ['dynamic', 'assign', 'n1'], 'dynamic assign: nothing to assign. Pass --configmap or --file. [USAGE]'],
    [
      'a configuration in place of the fleet file',
      ['dynamic', 'assign', 'n1', '-f', payload],
      `dynamic assign: nothing to assign. -f is the fleet file: if ${payload} is the configuration, pass it with --file. [USAGE]`,
    ],
    [
      'two things to assign',
      ['dynamic', 'assign', 'n1', '--configmap', 'a/b', '--file', payload],
      'dynamic assign: --configmap and --file cannot be combined. Pass one of the two. [USAGE]',
    ],
    [
      'no CSR',
      ['csr', 'approve'],
      'csr approve: no CSR selected. Pass names of CSRs, --host for the nodes on these hosts, or --all. [USAGE]',
    ],
    [
      'a duration',
      ['dynamic', 'gc', '--older-than', 'foo'],
      '--older-than foo is not a valid duration. Use a duration such as 24h. [USAGE]',
    ],
    [
      'a setting without a value',
      ['config', 'render', '--set', 'maxPods'],
      '--set maxPods has no value. Write --set FIELD=VALUE, for example --set maxPods=50. [USAGE]',
    ],
    [
      'a setting without a value, before anything else',
      ['init', '--rootfs', join(directory, 'missing'), '--dry-run', '--set', 'maxPods'],
      '--set maxPods has no value. Write --set FIELD=VALUE, for example --set maxPods=50. [USAGE]',
    ],
    [
      'a directory without a hostname',
      ['init', '--rootfs', directory, '--dry-run'],
      `${directory}: the name of the Node is unknown: no name is configured, and /etc/hostname is missing or empty. Pass --node-name, or set nodeRegistration.name. [CONFIG_INVALID_NAME]`,
    ],
    [
      'an API server without a port',
      ['join', 'cp1', '--token', 'abcdef.0123456789abcdef', '--discovery-token-unsafe-skip-ca-verification', '--dry-run'],
      'argument address:port: "cp1" has no port. Use an endpoint such as 10.0.0.10:6443 or [fd00::10]:6443. [CONFIG_INVALID_ENDPOINT]',
    ],
    [
      'a control plane that is too old',
      ['init', '--rootfs', directory, '--dry-run', '--node-name', 'n1', '--kubernetes-version', 'v1.34.0'],
      'Kubernetes v1.34.0: control planes older than 1.35 are not supported. Set another version with --kubernetes-version (kubernetesVersion in the file), or use kubeadm v1.34. [KUBERNETES_VERSION_UNSUPPORTED]',
    ],
    [
      'node labels with a space',
      ['init', '--rootfs', directory, '--node-name', 'n1', '--node-labels', 'a b'],
      `${directory}: kubelet flag --node-labels: "a b" is not key=value. Write the labels as comma-separated pairs without spaces, for example pool=edge,zone=a. [FLAG_NOT_ENCODABLE]`,
    ],
  ])('%s', async (_, argv, line) => {
    const { code, stderr } = await run(...argv);
    expect([code, stderr.trimEnd().split('\n').at(-1)]).toEqual([2, line]);
  });
});

describe('a value the kubelet accepts but exits with', () => {
  it('is reported with the fields that fix it', async () => {
    const file = join(directory, 'static.yaml');
    writeFileSync(file, 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncpuManagerPolicy: static\n');
    const { stdout, stderr } = await run('config', 'validate', file, '--kubernetes-version', '1.36');
    expect(`${stdout}${stderr}`).toContain(
      'cpuManagerPolicy: static requires a CPU reservation; the kubelet accepts the file but exits at startup. Set reservedSystemCPUs, or cpu in kubeReserved or systemReserved. [KUBELET_START_CPU_MANAGER]',
    );
  });
});

describe('a saved plan', () => {
  it.each(['{"apiVersion": "kubeletadm.dev/v1alpha1", "kind": "Fleet", "hosts": []}', 'kind: "Fleet"\n', 'kind: Fleet # all\nhosts: []\n'])(
    'is not a fleet file: %s',
    async (text) => {
      const file = join(directory, 'other');
      writeFileSync(file, text);
      const { code, stderr } = await run('apply', file);
      expect([code, stderr]).toEqual([
        2,
        `${file} is a fleet file, not a saved plan. Apply the fleet file with kubeletadm apply -f ${file}. [PLAN_INVALID]\n`,
      ]);
    },
  );

  it('is not mistaken for a fleet file when a name contains "kind: Fleet"', async () => {
    const file = join(directory, 'other');
    writeFileSync(file, '{"kind": "FleetPlan", "name": "kind: Fleet"}');
    expect((await run('apply', file)).stderr).toContain('is not a valid saved plan: ');
  });
});
