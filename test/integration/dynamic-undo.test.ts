import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { interrupted } from '../../src/base/errors.ts';
import { runCli } from '../../src/cli/run.ts';
import { createServices } from '../../src/wiring.ts';
import { TextSink } from '../support/run-cli.ts';
import { type AgentFleet, agentFleet } from '../support/stand-in-agents.ts';
import { TOKEN_KUBECONFIG } from '../support/token-kubeconfig.ts';

const HEADER = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
const HISTORY = 'kubeletadm.dev/config-history';

let directory: string;
let fleet: AgentFleet;
let abort: AbortController;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'dynamic-undo-'));
  writeFileSync(join(directory, 'admin.conf'), TOKEN_KUBECONFIG);
  abort = new AbortController();
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** Runs a command. @param answer to the question; null: no terminal */
async function run(answer: boolean | null, argv: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const [stdout, stderr] = [new TextSink(), new TextSink()];
  const services = createServices({
    env: { PATH: process.env.PATH ?? '', HOME: directory, KUBECONFIG: join(directory, 'admin.conf'), ...env },
    stdin: Readable.from(['']),
    stdout,
    stderr,
    signal: abort.signal,
  });
  const questions: string[] = [];
  const touching = {
    self: { ...services.self, name: 'alice@ws1' },
    clock: fleet.clock,
    connectCluster: async () => ({ ...fleet.cluster, close: async () => {} }),
    canAsk: answer !== null,
    confirm: async (question: string) => {
      questions.push(question);
      return answer;
    },
  };
  const code = await runCli(argv, { ...services, ...touching }, '0.0.0-test');
  return { code, stdout: stdout.text, stderr: stderr.text, questions };
}
const dynamicWith = (answer: boolean | null, ...argv: readonly string[]) => run(answer, ['dynamic', ...argv]);
const dynamic = (...argv: readonly string[]) => dynamicWith(null, ...argv);
const undo = (...argv: readonly string[]) => dynamic('undo', ...argv, '--yes');

async function push(maxPods: number): Promise<string> {
  const path = join(directory, 'kubelet.yaml');
  writeFileSync(path, `${HEADER}maxPods: ${maxPods}\n`);
  return (await dynamic('push', path)).stdout.trim();
}
const nameOf = (source: string): string => source.split('/')[1] ?? '';
const refOf = (source: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', namespace: source.split('/')[0] ?? '', name: nameOf(source) });
const nodeOf = (name: string) => ({ apiVersion: 'v1', kind: 'Node', name });
const annotate = (name: string, annotations: Readonly<Record<string, string | null>>) =>
  fleet.cluster.patch(nodeOf(name), 'merge', { metadata: { annotations } });
const historyOf = async (name: string) => {
  const node = await fleet.cluster.get(nodeOf(name));
  return JSON.parse(node?.metadata.annotations?.[HISTORY] ?? '[]') as { id: string; from: { source: string }; to: { source: string } }[];
};
const sourceJson = (source: string): string => {
  const [namespace, name, kubeletConfigKey] = source.split('/');
  return JSON.stringify({ configMap: { kubeletConfigKey, name, namespace } });
};

describe('dynamic undo', () => {
  it('returns a node to its previous ConfigMap, then with a second undo to the later one', async () => {
    fleet = await agentFleet(['n1']);
    const [first, second] = [await push(50), await push(60)];
    await dynamic('assign', 'n1', '--configmap', first);
    await dynamic('assign', 'n1', '--configmap', second, '--reason', 'OPS-1');
    const { code, stderr } = await undo('n1', '--reason', 'OPS-2');
    expect([code, fleet.runs()]).toEqual([0, { n1: nameOf(first) }]);
    expect(stderr).toMatch(
      new RegExp(`n1: undoes assign of alice@ws1 at 2030-\\S+Z \\([0-9a-f]{8}\\), reason "OPS-1": back to ${first}\n`),
    );
    const again = await undo('n1');
    expect([again.code, fleet.runs()]).toEqual([0, { n1: nameOf(second) }]);
    const history = await dynamic('history', 'n1');
    expect(history.stdout).toMatch(/AT +RUN +CHANGE\n/);
    expect(history.stdout).toMatch(new RegExp(`Z +[0-9a-f]{8} +alice@ws1 assigned ${first} \\(OPS-2\\): undo of [0-9a-f]{8}\n`));
    expect(history.stdout.match(/alice@ws1 assigned/g)).toHaveLength(4);
  });

  it('returns to the local configuration, which the node had before its first assignment, and back after a reset', async () => {
    fleet = await agentFleet(['n1']);
    const source = await push(50);
    await dynamic('assign', 'n1', '--configmap', source);
    expect((await undo('n1')).code).toBe(0);
    expect(fleet.runs()).toEqual({ n1: 'local' });
    await dynamic('assign', 'n1', '--configmap', source);
    await dynamic('reset', 'n1');
    expect((await undo('n1')).code).toBe(0);
    expect(fleet.runs()).toEqual({ n1: nameOf(source) });
  });

  it('shows the plan and asks; changes nothing if the answer is no', async () => {
    fleet = await agentFleet(['n1', 'n2']);
    const source = await push(50);
    await dynamic('assign', 'n1', 'n2', '--configmap', source);
    const declined = await dynamicWith(false, 'undo', 'n1', 'n2');
    expect([declined.code, declined.questions]).toEqual([1, ['Apply these changes? [y/N] ']]);
    expect(declined.stderr).toMatch(/n1, n2|n\[1:2\]: undoes assign of alice@ws1/);
    expect(declined.stdout).toContain(`~ Node n1: batch 1, canary: ${source} was assigned`);
    expect(declined.stderr).toContain('dynamic undo was declined: nothing was changed\n');
    expect(fleet.runs()).toEqual({ n1: nameOf(source), n2: nameOf(source) });
    const accepted = await dynamicWith(true, 'undo', 'n1', 'n2');
    expect([accepted.code, fleet.runs()]).toEqual([0, { n1: 'local', n2: 'local' }]);
    const unasked = await dynamic('undo', 'n1');
    expect([unasked.code, unasked.stderr]).toEqual([
      2,
      'dynamic undo asks before it changes anything, but standard input is not a terminal. Add --yes. To see the plan first, add --dry-run. [USAGE]\n',
    ]);
    const planned = await dynamic('undo', 'n1', '--dry-run', '--exit-code');
    expect([planned.code, planned.stdout]).toEqual([6, expect.stringContaining('~ Node n1: the local configuration was assigned')]);
  });

  it('returns each node to its own assignment, batch by batch, and stops at a failed canary', async () => {
    fleet = await agentFleet(['n1', 'n2', 'n3', 'n4']);
    const [a, b, c] = [await push(50), await push(60), await push(70)];
    await dynamic('assign', 'n1', 'n2', '--configmap', a);
    await dynamic('assign', 'n3', '--configmap', b);
    await dynamic('assign', 'n1', 'n2', 'n3', 'n4', '--configmap', c);
    const { code, stdout, stderr } = await undo('n1', 'n2', 'n3', 'n4', '--max-unavailable', '2', '-v', '1');
    expect([code, stdout]).toEqual([0, '4 nodes: 4 changed.\n']);
    expect(stderr).toContain('batch 1 (canary), 1 node: n1\n');
    expect(fleet.runs()).toEqual({ n1: nameOf(a), n2: nameOf(a), n3: nameOf(b), n4: 'local' });
    await dynamic('assign', 'n1', 'n2', 'n3', 'n4', '--configmap', c);
    fleet.behaviours.set('maxPods: 50', () => ({ healthz: { ok: false, why: 'answers 500' } }));
    const failed = await undo('n1', 'n2', 'n3', 'n4', '--on-failure', 'revert');
    expect([failed.code, failed.stdout]).toEqual([5, '4 nodes: 1 rolled back, 3 not started.\n']);
    expect(new Set(Object.values(fleet.runs()))).toEqual(new Set([nameOf(c)]));
  });

  it('with --to, returns to the assignment after a run, or to the oldest one', async () => {
    fleet = await agentFleet(['n1']);
    const sources = [await push(50), await push(60), await push(70)];
    for (const source of sources) await dynamic('assign', 'n1', '--configmap', source);
    const [first] = await historyOf('n1');
    const to = (first?.id ?? '').slice(0, 8);
    expect((await undo('n1', '--to', to)).code).toBe(0);
    expect(fleet.runs()).toEqual({ n1: nameOf(sources[0] ?? '') });
    expect((await undo('n1', '--to', 'oldest')).code).toBe(0);
    expect(fleet.runs()).toEqual({ n1: 'local' });
    const unknown = await undo('n1', '--to', 'ffffffff');
    expect([unknown.code, unknown.stderr]).toEqual([
      3,
      expect.stringMatching(/n1: the history of the Node has no change with the id ffffffff\. The newest ids are .*\[UNDO_UNKNOWN_ID\]/),
    ]);
  });

  it('keeps the last ten assignments', async () => {
    fleet = await agentFleet(['n1']);
    const [a, b] = [await push(50), await push(60)];
    for (let i = 0; i < 7; i++) for (const source of [a, b]) await dynamic('assign', 'n1', '--configmap', source, '--wait', 'none');
    expect(await historyOf('n1')).toHaveLength(10);
  });

  it('keeps no record of a rollout whose nodes were reverted', async () => {
    fleet = await agentFleet(['n1', 'n2']);
    const [good, bad] = [await push(50), await push(60)];
    await dynamic('assign', 'n1', 'n2', '--configmap', good);
    fleet.behaviours.set('maxPods: 60', (_, node) => (node === 'n2' ? { healthz: { ok: false, why: 'answers 500' } } : {}));
    expect((await dynamic('assign', 'n1', 'n2', '--configmap', bad, '--on-failure', 'revert')).code).toBe(5);
    expect((await historyOf('n1')).map(({ from, to }) => [from.source, to.source])).toEqual([['local', good]]);
    expect((await undo('n1', 'n2')).code).toBe(0);
    expect(fleet.runs()).toEqual({ n1: 'local', n2: 'local' });
  });
});

describe('an interrupted dynamic undo', () => {
  it('is resumed by the same command, and undoes no node twice', async () => {
    fleet = await agentFleet(['n1', 'n2', 'n3']);
    const [a, b] = [await push(50), await push(60)];
    for (const source of [a, b]) await dynamic('assign', 'n1', 'n2', 'n3', '--configmap', source);
    fleet.plan.set(fleet.elapsedSeconds + 50, () => abort.abort(interrupted('SIGTERM')));
    expect((await undo('n1', 'n2', 'n3')).code).toBe(143);
    expect(fleet.runs()).toEqual({ n1: nameOf(a), n2: nameOf(a), n3: nameOf(b) });
    abort = new AbortController();
    const resumed = await undo('n1', 'n2', 'n3');
    expect([resumed.code, resumed.stdout]).toEqual([0, '3 nodes: 1 changed, 2 unchanged.\n']);
    expect(fleet.runs()).toEqual({ n1: nameOf(a), n2: nameOf(a), n3: nameOf(a) });
  });

  it('never separates an assignment from its record, if any write is the last one', async () => {
    fleet = await agentFleet(['n1']);
    const { create, patch } = fleet.cluster;
    const [a, b] = [await push(50), await push(60)];
    for (const source of [a, b]) await dynamic('assign', 'n1', '--configmap', source);
    for (let writes = 0; writes < 4; writes++) {
      let left = writes;
      const killed = () => {
        if (left-- === 0) abort.abort(interrupted('SIGTERM'));
        abort.signal.throwIfAborted();
      };
      Object.assign(fleet.cluster, {
        create: async (...args: Parameters<typeof create>) => {
          killed();
          return create(...args);
        },
        patch: async (...args: Parameters<typeof patch>) => {
          if (JSON.stringify(args[2]).includes('config-source')) killed();
          return patch(...args);
        },
      });
      await undo('n1');
      Object.assign(fleet.cluster, { create, patch });
      abort = new AbortController();
      const node = await fleet.cluster.get(nodeOf('n1'));
      const last = (await historyOf('n1')).at(-1);
      expect(node?.metadata.annotations?.['kubeletadm.dev/config-source']).toBe(sourceJson(last?.to.source ?? ''));
    }
  });
});

describe('dynamic undo is refused before any change', () => {
  const refused = async (...argv: readonly string[]) => {
    const before = await Promise.all(Object.keys(fleet.runs()).map((name) => fleet.cluster.get(nodeOf(name))));
    const { code, stderr } = await undo(...argv);
    const after = await Promise.all(Object.keys(fleet.runs()).map((name) => fleet.cluster.get(nodeOf(name))));
    expect([code, after.map((node) => node?.metadata.annotations)]).toEqual([3, before.map((node) => node?.metadata.annotations)]);
    return stderr;
  };

  it('for a node without a record', async () => {
    fleet = await agentFleet(['n1']);
    expect(await refused('n1')).toContain(
      '\nn1: the Node has no record of an earlier assignment by kubeletadm. Assign a ConfigMap with kubeletadm dynamic assign n1, or return to the local configuration with kubeletadm dynamic reset n1. [UNDO_NOTHING]\n',
    );
  });

  it('if another tool has assigned something else since, for all nodes', async () => {
    fleet = await agentFleet(['n1', 'n2']);
    const [a, b] = [await push(50), await push(60)];
    await dynamic('assign', 'n1', 'n2', '--configmap', a);
    await annotate('n2', { 'kubeletadm.dev/config-source': sourceJson(b) });
    expect(await refused('n1', 'n2')).toMatch(
      new RegExp(`n2: ${b} was assigned by an unknown client, after the last recorded change: assign of alice@ws1 at .*\\[UNDO_MOVED\\]`),
    );
  });

  it.each(['deleted', 'replaced'])('if the earlier ConfigMap was %s', async (what) => {
    fleet = await agentFleet(['n1']);
    const [a, b] = [await push(50), await push(60)];
    for (const source of [a, b]) await dynamic('assign', 'n1', '--configmap', source);
    const found = await fleet.cluster.get(refOf(a));
    await fleet.cluster.delete(refOf(a));
    const metadata = { namespace: refOf(a).namespace, name: nameOf(a), labels: found?.metadata.labels ?? {} };
    if (what === 'replaced') await fleet.cluster.create({ ...refOf(a), metadata, data: { kubelet: `${HEADER}maxPods: 5\n` } });
    expect(await refused('n1')).toContain(
      what === 'deleted'
        ? `n1: ConfigMap ${a}, the earlier assignment, does not exist any more. Assign the file of the configuration again: kubeletadm dynamic assign n1 --file FILE. [UNDO_NOT_POSSIBLE]`
        : `n1: ConfigMap ${a}, the earlier assignment, has another content since then. Check its content; to assign it as it is now: kubeletadm dynamic assign n1 --configmap ${a}. [UNDO_NOT_POSSIBLE]`,
    );
    // The same content under another uid is the same configuration.
    if (what === 'replaced') await fleet.cluster.delete(refOf(a));
    await push(50);
    expect((await undo('n1')).code).toBe(0);
    expect(fleet.runs()).toEqual({ n1: nameOf(a) });
  });

  it('if the record, which the node can forge, names a ConfigMap that was not made for nodes', async () => {
    fleet = await agentFleet(['n1']);
    const source = await push(50);
    await dynamic('assign', 'n1', '--configmap', source);
    const [record] = await historyOf('n1');
    const data = { kubelet: `${HEADER}maxPods: 60\n` };
    await fleet.cluster.create({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'kube-system', name: 'private' }, data });
    await annotate('n1', { [HISTORY]: JSON.stringify([{ ...record, from: { source: 'kube-system/private/kubelet' } }]) });
    expect(await refused('n1')).toMatch(/was not created by kubeletadm dynamic push or dynamic assign --file: undo does not assign it/);
    await annotate('n1', { [HISTORY]: JSON.stringify([{ ...record, from: { source: '../x' } }, 7, null]) });
    expect(await refused('n1')).toContain('[UNDO_NOTHING]');
  });

  it('if a node requires signatures, whose older revision it would reject', async () => {
    fleet = await agentFleet(['n1'], { requiresSignature: true });
    const [a, b] = [await push(50), await push(60)];
    const [namespace, name] = a.split('/');
    const record = { id: '0a1b2c3d', at: '2030-01-01T00:00:00.000Z', by: 'alice', command: 'assign', to: { source: b } };
    const object = await fleet.cluster.get(refOf(a));
    const { contentHash } = await import('../../src/dynamic/workflows/config-contents.ts');
    const from = { source: `${namespace}/${name}/kubelet`, sha256: contentHash(object ?? {}) };
    await annotate('n1', { [HISTORY]: JSON.stringify([{ ...record, from }]), 'kubeletadm.dev/config-source': sourceJson(b) });
    expect(await refused('n1')).toContain('refuses the older revision');
  });
});

it('keeps the previous ConfigMap of each node when unused ConfigMaps are deleted', async () => {
  fleet = await agentFleet(['n1']);
  const [unused, a, b] = [await push(40), await push(50), await push(60)];
  for (const source of [a, b]) await dynamic('assign', 'n1', '--configmap', source, '--wait', 'good');
  const { stdout } = await dynamic('gc', '--older-than', '1s');
  expect(stdout).toBe(`configmap/${nameOf(unused)} deleted\n`);
  expect((await undo('n1')).code).toBe(0);
});

describe('edit of a Node', () => {
  const edit = (editor: string, answer: boolean | null, ...argv: readonly string[]) =>
    run(answer, ['edit', ...argv], { KUBE_EDITOR: editor });

  it('stores the edited configuration as a new ConfigMap with the other keys, and assigns it after the question', async () => {
    fleet = await agentFleet(['n1', 'n2']);
    const path = join(directory, 'kubelet.yaml');
    writeFileSync(path, `${HEADER}# few pods\nmaxPods: 50\nresolvConf: resolv.conf\n`);
    writeFileSync(join(directory, 'resolv.conf'), 'nameserver 1.1.1.1\n');
    const pushed = await dynamic(
      'push',
      path,
      '--name',
      'edge',
      '--beside',
      `resolv.conf=${join(directory, 'resolv.conf')}`,
      '--skip-validation',
    );
    const source = pushed.stdout.trim();
    await dynamic('assign', 'n1', 'n2', '--configmap', source, '--skip-validation');
    const declined = await edit('sed -i s/50/40/', false, 'n1');
    expect([declined.code, declined.questions]).toEqual([1, ['Apply these changes? [y/N] ']]);
    expect(declined.stdout).toMatch(/\+ ConfigMap kubeletadm-system\/edge-\w{10}\n[\s\S]*~ Node n1/);
    const kept = /kept in (\S+\.yaml)/.exec(declined.stderr)?.[1] ?? '';
    expect(fleet.runs()).toEqual({ n1: nameOf(source), n2: nameOf(source) });
    rmSync(dirname(kept), { recursive: true, force: true });
    const { code, stderr } = await edit('sed -i s/50/40/', true, 'node/n1');
    expect(code, stderr).toBe(0);
    const { n1 = '', n2 } = fleet.runs();
    expect([n1.startsWith('edge-'), n1 === nameOf(source), n2]).toEqual([true, false, nameOf(source)]);
    const object = await fleet.cluster.get({ ...refOf(source), name: n1 });
    expect(object?.data).toEqual({
      kubelet: `${HEADER}# few pods\nmaxPods: 40\nresolvConf: resolv.conf\n`,
      'resolv.conf': 'nameserver 1.1.1.1\n',
    });
  });

  it('is cancelled without a change, and opens an empty overlay if nothing is assigned', async () => {
    fleet = await agentFleet(['n1']);
    expect(await edit('true', true, 'n1')).toMatchObject({ code: 0, stdout: 'Edit cancelled, no changes made.\n' });
    const opened = join(directory, 'opened');
    const { code, stderr } = await edit(`cp "$1" ${opened}; echo 'maxPods: 33' >>`, true, 'n1');
    expect(code, stderr).toBe(0);
    expect(readFileSync(opened, 'utf8')).toContain('kind: KubeletConfigurationOverlay\n');
    expect(fleet.runs().n1).toMatch(/^node-config-/);
  });

  it('refuses an invalid configuration, a Node that requires signatures, and an assignment that was replaced meanwhile', async () => {
    fleet = await agentFleet(['n1']);
    const [a, b] = [await push(50), await push(60)];
    await dynamic('assign', 'n1', '--configmap', a);
    const invalid = await edit('sed -i s/50/many/', true, 'n1');
    expect([invalid.code, invalid.stderr]).toEqual([2, expect.stringMatching(/maxPods.*kept in/)]);
    const { getRaw } = fleet.cluster;
    const replaced = run(true, ['edit', 'n1'], { KUBE_EDITOR: 'sed -i s/50/40/' });
    fleet.cluster.getRaw = async (...args) => {
      await annotate('n1', { 'kubeletadm.dev/config-source': sourceJson(b) });
      return getRaw(...args);
    };
    const { code, stderr } = await replaced;
    expect([code, stderr]).toEqual([1, expect.stringMatching(new RegExp(`n1: ${b} was assigned .*\\[ASSIGNMENT_REPLACED\\]`))]);
    fleet = await agentFleet(['n1'], { requiresSignature: true });
    const signed = await edit('sed -i s/50/40/', true, 'n1');
    expect([signed.code, signed.stderr]).toEqual([3, expect.stringContaining('[DYNAMIC_SIGNATURE_REQUIRED]')]);
  });

  it('refuses a ConfigMap whose content was changed meanwhile', async () => {
    fleet = await agentFleet(['n1']);
    const path = join(directory, 'kubelet.yaml');
    writeFileSync(path, `${HEADER}maxPods: 50\n`);
    const source = (await dynamic('push', path, '--name', 'shared', '--no-append-hash')).stdout.trim();
    await dynamic('assign', 'n1', '--configmap', source);
    const theirs = { kubelet: `${HEADER}maxPods: 70\n` };
    const before = await fleet.cluster.get(refOf(source));
    const { get } = fleet.cluster;
    let reads = 0;
    fleet.cluster.get = async (ref) =>
      ref.kind === 'ConfigMap' && ref.name === nameOf(source) && reads++ > 0 && before !== null ? { ...before, data: theirs } : get(ref);
    const { code, stderr } = await edit('sed -i s/50/40/', true, 'n1');
    expect([code, stderr]).toEqual([
      3,
      expect.stringMatching(/was changed during the edit, and was not written.*kept in.*\[EDIT_CONFLICT\]/),
    ]);
  });

  it('gives no agent the right to read a namespace that its Node names', async () => {
    fleet = await agentFleet(['n1']);
    const source = 'team-a/private/kubelet';
    const data = { kubelet: `${HEADER}maxPods: 50\n` };
    await fleet.cluster.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'team-a' } });
    await fleet.cluster.create({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'team-a', name: 'private' }, data });
    await annotate('n1', { 'kubeletadm.dev/config-source': sourceJson(source), 'kubeletadm.dev/config-namespace': 'team-a' });
    const { get } = fleet.cluster;
    fleet.cluster.get = async (ref) => {
      const found = await get(ref);
      if (ref.kind !== 'Node' || found === null) return found;
      const conditions = [{ type: 'KubeletConfigOk', status: 'False', reason: 'Unavailable', message: 'forged' }];
      return { ...found, status: { ...(found as { status?: object }).status, conditions } };
    };
    const { stdout } = await edit('sed -i s/50/40/', false, 'n1');
    expect(stdout).toContain('ConfigMap team-a/');
    expect(stdout).not.toContain('Role');
  });
});
