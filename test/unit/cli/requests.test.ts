import { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import type { On } from '../../../src/cli/command.ts';
import { COMMANDS } from '../../../src/cli/commands.ts';
import { PHASE_LISTS } from '../../../src/kubeadm/workflows/phase-lists.ts';
import { sourceFiles } from '../../support/source-files.ts';

/** Files that define commands and map their options to typed requests. */
const MAPPING = /^src\/cli\/(?:command|program|request-parts|option-values|node-request|[a-z-]+-(?:commands?|options))\.ts$/;

describe('the options of a command line', () => {
  it('are read only by the definitions of commands', () => {
    const readers = sourceFiles('src').filter(
      ({ path, code }) => !MAPPING.test(path) && /\bCommandOptions\b|\bflag(?:Text|List|Choice|Number|Duration)\(/.test(code),
    );
    expect(readers.map(({ path }) => path)).toEqual([]);
  });
});

/** The typed request of a command line. */
async function requestOf(line: string): Promise<unknown> {
  const words = line.split(' ');
  let request: unknown;
  const on: On = (command, readRequest) =>
    command.action((...args: unknown[]) => {
      const own = args.at(-1) as Command;
      request = readRequest(own.args, own.optsWithGlobals());
    });
  const program = new Command('kubeletadm').exitOverride();
  const { load } = COMMANDS.find(({ name }) => name === words[0]) as (typeof COMMANDS)[number];
  (await load())(program.command(words[0] as string), on, PHASE_LISTS);
  await program.parseAsync(words, { from: 'user' });
  return request;
}

const OVER_SSH = { identityFiles: ['id'], transport: 'builtin', become: 'auto', connectTimeoutMs: 10_000, commandTimeoutMs: 90_000 };

describe('the request of a command line', () => {
  it.each<[string, object]>([
    [
      'init phase upload-config all --dry-run --exit-code --set maxPods=5 --node-labels a=b,c=d --host n1 -i id --command-timeout 90s',
      {
        run: { onlyPhase: 'upload-config', dryRun: true },
        plan: { failsIfChanged: true, format: 'text' },
        node: { settings: ['maxPods=5'], extraArgs: [{ name: 'node-labels', value: 'a=b,c=d' }] },
        hosts: { addresses: ['n1'], connection: OVER_SSH },
        writing: { breakLock: false, confirmMs: undefined },
      },
    ],
    [
      'join phase preflight 10.0.0.1:6443 --wait-ready',
      { run: { onlyPhase: 'preflight' }, endpoint: '10.0.0.1:6443', waitReadyMs: 300_000 },
    ],
    [
      'join 10.0.0.1:6443 --kubelet-extra-args node-ip- --kubelet-extra-args --v=4- --kubelet-extra-args --max-pods-',
      { node: { extraArgs: [{ name: 'v', value: '4-' }], droppedFlags: ['node-ip', 'max-pods'] } },
    ],
    ['reset --delete-node --node-name n1 --force', { force: true, deleteNode: { nodeName: 'n1', cluster: {} } }],
    ['upgrade node --allow-pod-loss', { run: { podLoss: 'warn' } }],
    ['join 10.0.0.1:6443 --allow-pod-loss', { run: { podLoss: 'warn' } }],
    ['init', { run: { podLoss: 'refuse' } }],
    ['plan --allow-pod-loss', { run: { podLoss: 'warn' } }],
    ['apply', { run: { podLoss: 'refuse' } }],
    ['upgrade node --no-confirm --break-lock', { writing: { breakLock: true, confirmMs: null } }],
    [
      'apply plan.json --canary 10% --serial 5 --confirm-timeout 2m --retry failed -o json',
      {
        planFile: 'plan.json',
        retriesFailed: true,
        output: { format: 'json' },
        rules: { parallel: 50, canary: { percent: 10 }, maxUnavailable: { hosts: 5 }, maxFail: null },
        writing: { confirmMs: 120_000 },
      },
    ],
    ['upgrade node --canary 10.0.0.1', { rules: { canaryHosts: ['10.0.0.1'] } }],
    ['apply --max-unavailable 5 --max-fail 2', { rules: { maxUnavailable: { hosts: 5 }, maxFail: { hosts: 2 } } }],
    ['fleet exec --limit a,b --timeout 5 -- uptime', { argv: ['sh', '-c', 'uptime'], timeoutMs: 5_000, selection: { limit: ['a', 'b'] } }],
    [
      'dynamic assign n1 --configmap kubeletadm-system/c/kubelet --wait good',
      {
        assigned: { kind: 'config-map', source: { namespace: 'kubeletadm-system', name: 'c', kubeletConfigKey: 'kubelet' } },
        choice: { kind: 'names', names: ['n1'] },
        rollout: { wait: 'good', timeoutMs: 900_000 },
      },
    ],
    ['dynamic reset node/n1 n2 no/n1', { choice: { kind: 'names', names: ['node/n1', 'n2'] } }],
    [
      'dynamic undo n1 --to 0a1b2c3d -y',
      { choice: { kind: 'names', names: ['n1'] }, to: '0a1b2c3d', yes: true, rollout: { wait: 'trial' } },
    ],
    ['edit fleet -f f.yaml', { name: undefined, yes: false, fleet: { file: 'f.yaml', isApproved: false } }],
    ['edit no/n1 -y', { name: 'node/n1', yes: true, node: { choice: { names: ['node/n1'] } } }],
    ['dynamic status -l pool=edge', { choice: { kind: 'selector', selector: { text: 'pool=edge' } } }],
    [
      'dynamic status --limit edge-* --group gpu -f f.yaml',
      { choice: { kind: 'fleet', file: 'f.yaml', selection: { limit: ['edge-*'], groups: ['gpu'] } } },
    ],
    ['dynamic history node/n1', { choice: { kind: 'names', names: ['node/n1'] } }],
    ['dynamic enable n1 --node-js /opt/node', { node: '/opt/node' }],
    ['dynamic enable n1 --node /opt/node', { node: '/opt/node' }],
    ['config from-node nodes/n1', { choice: { kind: 'names', names: ['node/n1'] } }],
    ['node explain node/n1 maxPods', { target: { node: 'n1' }, field: 'maxPods' }],
    ['node explain host/root@n1', { target: { address: 'root@n1' } }],
    ['certs renew-kubelet --node-name node/n1', { nodeName: 'n1' }],
    ['csr approve csr/a certificatesigningrequest.certificates.k8s.io/b c', { names: ['a', 'b', 'c'] }],
    ['fleet status -l pool=edge', { selection: { limit: [], groups: [], selector: { text: 'pool=edge' } } }],
    ['fleet confirm -l pool=edge', { hosts: [], selection: { selector: { text: 'pool=edge' } } }],
    ['certs renew all --expires-within 1h', { names: 'all', withinMs: 3_600_000 }],
    ['config migrate --old-config a.yaml', { kind: 'kubeadm', oldConfig: 'a.yaml' }],
  ])('%s', async (line, request) => {
    expect(await requestOf(line)).toMatchObject(request);
  });

  it.each([
    ['join --ca-cert ca.crt --discovery-file cluster.conf', '--ca-cert and --discovery-file cannot be combined'],
    ['reset --node-name n1', '--node-name requires --delete-node'],
    ['init --set maxPods', '--set maxPods has no value'],
    ['upgrade node --set =5', '--set =5 has no field'],
    ['init --host n1 --host n1', '--host n1 is given twice'],
    ['upgrade node --no-confirm --confirm-timeout 5m', '--no-confirm and --confirm-timeout cannot be combined'],
    ['apply --serial 0', '--serial 0 must be a number of hosts (1 or more)'],
    ['apply --canary 110%', '--canary 110% must be a number of hosts (0 or more) or a percentage (0% to 100%)'],
    ['apply --canary ,', '--canary , does not name the canaries'],
    ['upgrade node --canary !edge', '--canary !edge does not name the canaries'],
    ['apply --max-unavailable 0', '--max-unavailable 0 must be a number of hosts (1 or more)'],
    ['apply --serial 5 --max-unavailable 5', '--serial is the same as --max-unavailable'],
    ['dynamic assign n1 --configmap a/b --wait none --max-fail 1', '--max-fail cannot be combined with --wait none'],
    ['dynamic reset n1 --max-fail one', '--max-fail one must be a number of nodes (0 or more) or a percentage (0% to 100%)'],
    ['dynamic assign n1 --configmap a/b --wait none --canary 2', '--canary cannot be combined with --wait none'],
    ['dynamic inspect n1 --dry-run', '--dry-run requires --repair'],
    ['dynamic status pod/n1', 'pod/n1: the type is "pod", not node. Write NAME or node/NAME'],
    ['dynamic reset node/', 'node/: the name of the Node is missing or contains a slash'],
    [`dynamic assign n1 --configmap a/b --reason ${'x'.repeat(501)}`, 'the text has 501 characters, the maximum is 500'],
    ['dynamic assign n1 --configmap a/b --reason a\u001bb', 'the text has line breaks or control characters'],
    ['dynamic assign n1 -l a=b --configmap a/b', 'the nodes are selected in more than one way'],
    ['node explain pod/n1', 'pod/n1 names neither a host nor a node'],
    ['join 10.0.0.1:6443 --node-ip 10.0.0.2 --kubelet-extra-args node-ip-', 'the kubelet flag node-ip is set and dropped (node-ip-)'],
    ['csr approve pod/a', 'pod/a does not name a CSR'],
    ['fleet plan --selector a=b=c', "--selector a=b=c: found '=', expected: ',' or 'end of string'"],
    ['fleet status --selector ,', '--selector ,'],
    ['token create --certificate-key 00', '--certificate-key requires --print-join-command'],
  ])('is refused with exit code 2 before anything is read: %s', async (line, message) => {
    await expect(requestOf(line)).rejects.toMatchObject({ exitCode: 2, message: expect.stringContaining(message) });
  });
});
