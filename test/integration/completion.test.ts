import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startLab } from '../../lab/lab.ts';
import type { Lab } from '../../lab/lab-options.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import { requirement } from '../support/requirement.ts';
import { runCommand } from '../support/run-cli.ts';

const FLEET = `apiVersion: kubeletadm.dev/v1alpha1
kind: Fleet
baseline: {ssh: {user: core}, labels: {site: a}}
groups:
  - {name: gpu, labels: {nvidia: ""}}
hosts:
  - {name: n1, address: 10.0.0.1, labels: {pool: edge}}
  - {name: n2, groups: [gpu], labels: {pool: core}}
`;

let directory: string;
let lab: Lab;
let fleetFile: string;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'ka-complete-'));
  lab = await startLab({ directory, hosts: 1 });
  fleetFile = join(directory, 'fleet.yaml');
  writeFileSync(fleetFile, FLEET);
  const admin = kubeCluster({ kubeconfig: { text: readFileSync(lab.kubeconfig, 'utf8'), file: lab.kubeconfig } });
  for (const name of ['worker-1', 'worker-2'])
    await admin.create({ apiVersion: 'v1', kind: 'Node', metadata: { name, labels: { zone: name } } });
  await admin.close();
});
afterAll(async () => {
  await lab?.close();
  rmSync(directory, { recursive: true, force: true });
});

/** The values for the last word, and the directive. */
async function complete(...words: readonly string[]): Promise<readonly string[]> {
  const { code, stdout, stderr } = await runCommand(['__complete', ...words], { env: { HOME: directory } });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => line.replace(/\t.*/, ''));
}

describe('the values for a word', () => {
  it.each<[string, readonly string[]]>([
    ['jo', ['join', ':4']],
    ['join --discovery-f', ['--discovery-file', ':4']],
    ['--v 2 init -o j', ['json', ':4']],
    ['init --config x', [':0']],
    ['init --patches ', [':16']],
    ['init --node-ip ', [':4']],
    ['config print join', ['join-defaults', ':4']],
    ['fleet status -o js', ['json', 'jsonpath=', 'jsonpath-as-json=', ':4']],
    ['init phase upload-co', ['upload-config', ':4']],
    ['init phase upload-config kubea', ['kubeadm', ':4']],
    ['join phase control-plane-prepare certs --discovery-f', ['--discovery-file', ':4']],
    ['join --skip-phases preflight,kubelet-wait-bootstrap/', ['preflight,kubelet-wait-bootstrap/node', ':4']],
    ['init --ignore-preflight-errors=Swap,NumC', ['--ignore-preflight-errors=Swap,NumCPU', ':4']],
    ['init --set topologyManagerP', ['topologyManagerPolicy=', 'topologyManagerPolicyOptions=', ':6']],
    ['config explain maxPa', ['maxParallelImagePulls', ':4']],
    ['config explain NodeSw', ['NodeSwap', ':4']],
    ['node explain localhost maxP', ['maxPods', 'maxParallelImagePulls', ':4']],
    ['config schema Kube', ['KubeletConfiguration', 'KubeletConfigurationOverlay', ':4']],
    ['explain AGENT_DO', ['AGENT_DOWN', ':4']],
    ['explain NodeSw', ['NodeSwap', ':4']],
    ['explain localhost maxP', ['maxPods', 'maxParallelImagePulls', ':4']],
    ['certs renew admin.conf ad', [':4']],
    ['completion f', ['fish', ':4']],
    ['fleet exec -- ', [':0']],
    ['unknown x', [':4']],
  ])('%s', async (line, expected) => {
    expect(await complete(...line.split(' '))).toEqual(expected);
  });

  it.each<[string, readonly string[]]>([
    ['fleet status -f FILE --limit ', ['n1', 'n2', 'gpu', ':4']],
    ['apply --file=FILE --limit n1,', ['n1,n2', 'n1,gpu', ':4']],
    ['plan -fFILE --group g', ['gpu', ':4']],
    ['fleet inventory -f FILE --host ', ['n1', 'n2', ':4']],
    ['fleet confirm -f FILE n1 ', ['n2', ':4']],
    ['fleet drift -f FILE -l pool=', ['pool=core', 'pool=edge', ':4']],
    ['dynamic status --fleet FILE --limit gp', ['gpu', ':4']],
    ['csr list -f FILE --host core@', ['core@10.0.0.1', 'core@n2', ':4']],
    ['fleet status -f /does/not/exist --limit ', [':4']],
    // The SSH configuration of the user.
    ['reset --host al', ['alias1', ':4']],
  ])('of a fleet file: %s', async (line, expected) => {
    writeFileSync(join(directory, 'ssh-config'), 'Host alias1 alias2*\n');
    const words = line.replace('FILE', fleetFile).split(' ');
    const own = words[0] === 'reset' ? ['reset', '--ssh-config', join(directory, 'ssh-config'), ...words.slice(1)] : words;
    expect(await complete(...own)).toEqual(expected);
  });

  it('of a broken fleet file: none', async () => {
    const broken = join(directory, 'broken.yaml');
    writeFileSync(broken, 'hosts: [');
    expect(await complete('fleet', 'status', '-f', broken, '--limit', '')).toEqual([':4']);
  });

  it('omits names that a shell would interpret', async () => {
    const hostile = join(directory, 'hostile.yaml');
    writeFileSync(
      hostile,
      `${FLEET}  - {name: "n3", labels: {pool: ok}}\n`.replace('name: gpu', 'name: "$(reboot)"').replace('[gpu]', '["$(reboot)"]'),
    );
    expect(await complete('plan', '-f', hostile, '--group', '')).toEqual([':4']);
  });

  it.each<[string, readonly string[]]>([
    ['dynamic status --kubeconfig KC ', ['worker-1', 'worker-2', ':4']],
    ['dynamic assign --kubeconfig KC worker-1 ', ['worker-2', ':4']],
    ['dynamic history --kubeconfig KC worker-1 ', [':4']],
    ['config from-node --kubeconfig KC w', ['worker-1', 'worker-2', ':4']],
    ['config diff --kubeconfig KC node/', ['node/worker-1', 'node/worker-2', ':0']],
    ['dynamic reset --kubeconfig KC -l zone=worker-2', ['zone=worker-2', ':4']],
    ['certs renew-kubelet --kubeconfig KC --node-name w', ['worker-1', 'worker-2', ':4']],
    ['dynamic status --kubeconfig /does/not/exist ', [':4']],
  ])('of a cluster: %s', async (line, expected) => {
    const words = line.split(' ').map((word) => (word === 'KC' ? lab.kubeconfig : word));
    expect(await complete(...words)).toEqual(expected);
  });

  it('does not wait for an API server that does not answer', async () => {
    const { stdout } = await runCommand(['__complete', 'dynamic', 'status', '--kubeconfig', lab.kubeconfig, ''], {
      services: ({ clock }) => ({
        clock: { ...clock, sleep: async () => undefined },
        connectCluster: () => new Promise(() => undefined),
      }),
    });
    expect(stdout).toBe(':4\n');
  });
});

/** A program in place of kubeletadm that prints the words it was given, and the values for them. */
const STAND_IN = `#!/bin/sh
for word in "$@"; do printf '<%s>' "$word" >>"$WORDS"; done
for last in "$@"; do :; done
case $last in
  --limit=*) printf -- '--limit=edge-1\\tedge\\n--limit=edge-2\\n:4\\n' ;;
  host:*) printf 'host:22\\n:4\\n' ;;
  --set) printf 'x\\n:4\\n' ;;
  max*) printf 'maxPods=\\n:6\\n' ;;
  *) printf 'edge-1\\tfirst host\\nedge-2\\n:4\\n' ;;
esac
`;

/** What a shell offers for a line, and the words that it passes on. */
function offered(command: readonly string[], input: string): { readonly offers: readonly string[]; readonly words: string } {
  const bin = mkdtempSync(join(directory, 'bin-'));
  writeFileSync(join(bin, 'kubeletadm'), STAND_IN, { mode: 0o755 });
  const words = join(bin, 'words');
  writeFileSync(words, '');
  const [program = '', ...args] = command;
  const env = { ...process.env, PATH: `${bin}:${process.env.PATH}`, WORDS: words, HOME: bin, TERM: 'dumb' };
  const text = execFileSync(program, [...args], { encoding: 'utf8', input, env });
  return { offers: text.trimEnd().split('\n'), words: readFileSync(words, 'utf8') };
}

const noBash = spawnSync('bash', ['-c', 'type compgen']).status === 0 ? null : 'completion needs bash';
const noFish = spawnSync('fish', ['-c', 'true']).status === 0 ? null : 'fish is not installed';
const noZsh = spawnSync('zsh', ['-c', 'true']).status === 0 ? null : 'zsh is not installed';

describe.skipIf(requirement('bash', noBash))('the script for bash', () => {
  it.each<[string, readonly string[], readonly string[], string]>([
    ['kubeletadm fleet ', ['kubeletadm', 'fleet', ''], ['edge-1', 'edge-2'], '<__complete><fleet><>'],
    ['kubeletadm plan --limit=e', ['kubeletadm', 'plan', '--limit', '=', 'e'], ['edge-1', 'edge-2'], '<__complete><plan><--limit=e>'],
    ['kubeletadm plan --limit=', ['kubeletadm', 'plan', '--limit', '='], ['edge-1', 'edge-2'], '<__complete><plan><--limit=>'],
    ['kubeletadm x host:2', ['kubeletadm', 'x', 'host', ':', '2'], ['22'], '<__complete><x><host:2>'],
    ['kubeletadm x --set max', ['kubeletadm', 'x', '--set', 'max'], ['maxPods='], '<__complete><x><--set><max>'],
    ['kubeletadm x x e', ['kubeletadm', 'x', 'x', 'e'], ['edge-1', 'edge-2'], '<__complete><x><x><e>'],
  ])('completes %j', async (line, split, offers, words) => {
    const { stdout: script } = await runCommand(['completion', 'bash']);
    const call = `COMP_LINE=${JSON.stringify(line)} COMP_POINT=${line.length} COMP_WORDS=(${split.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${split.length - 1}`;
    expect(offered(['bash', '--norc'], `${script}\n${call}\n_kubeletadm\nprintf '%s\\n' "\${COMPREPLY[@]}"\n`)).toEqual({ offers, words });
  });
});

describe.skipIf(requirement('fish', noFish))('the script for fish', () => {
  it.each([
    ['kubeletadm fleet ', ['edge-1\tfirst host', 'edge-2'], '<__complete><fleet><>'],
    ['kubeletadm plan --limit=e', ['--limit=edge-1\tedge', '--limit=edge-2'], '<__complete><plan><--limit=e>'],
  ])('completes %j', async (line, offers, words) => {
    const { stdout: script } = await runCommand(['completion', 'fish']);
    const file = join(directory, 'script.fish');
    writeFileSync(file, script);
    const { offers: found, words: given } = offered(['fish', '--no-config', '-c', `source ${file}; complete -C '${line}'`], '');
    expect({ offers: found, words: given }).toEqual({ offers, words });
  });
});

describe.skipIf(requirement('zsh', noZsh))('the script for zsh', () => {
  it('hands words and values on', async () => {
    const { stdout: script } = await runCommand(['completion', 'zsh']);
    // The parts of the completion system that the script calls.
    const stubs = `compdef() { :; }\n_describe() { print -rl -- "\${(@P)3}"; }\n_files() { print files; }\n`;
    const call = `words=(kubeletadm plan x); CURRENT=3; PREFIX=x\n_kubeletadm\n`;
    expect(offered(['zsh', '-f'], `${stubs}${script}\n${call}`)).toEqual({
      offers: ['edge-1:first host', 'edge-2:'],
      words: '<__complete><plan><x>',
    });
  });
});

describe('completion', () => {
  it('exists for no other shell', async () => {
    expect(await runCommand(['completion', 'tcsh'])).toEqual({
      code: 2,
      stdout: '',
      stderr: 'completion: unsupported shell tcsh. Supported shells: bash, zsh, fish. [USAGE]\n',
    });
  });
});
