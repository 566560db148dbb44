import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type ConfigSigners, formatSigners } from '../../src/dynamic/signing/signers.ts';
import { SIGNATURE_KEY, STATEMENT_KEY, signConfig } from '../../src/dynamic/signing/statement.ts';
import type { CommandFact } from '../../src/host/facts/query.ts';
import { AGENT_DIRECTORY } from '../../src/kubelet/node-agent/agent-program.ts';
import { acceptedFile, signersFile } from '../../src/kubelet/node-agent/layout.ts';
import { signWithSshKeygen } from '../../src/ssh/adapters/openssh/ssh-keygen.ts';
import { generateKey } from '../support/sshd.ts';
import { HEADER, NODE, newWorld, payload, type World } from '../unit/dynamic/agent/world.ts';

const NAMESPACE = 'kubeletadm-system';
const OVERLAY = 'apiVersion: kubeletadm.dev/v1alpha1\nkind: KubeletConfigurationOverlay\n';

type Data = Readonly<Record<string, string>>;

/** An agent that requires signatures, on a simulated node; the signatures are those of the local ssh-keygen. */
describe('an agent that requires signatures', { timeout: 60_000 }, () => {
  let directory: string;
  let world: World;
  const publicKey = (name: string): string => readFileSync(join(directory, `${name}.pub`), 'utf8').trim();
  const line = (name: string, options = ''): string => `${name}@example.com ${options}${publicKey(name)}\n`;
  const run = ([program = '', ...args]: readonly string[], input: string): Partial<CommandFact> => {
    const { status, stdout, stderr } = spawnSync(program, args, { input, encoding: 'utf8' });
    return { exitCode: status ?? 1, stdout, stderr };
  };
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'ka-signed-config-'));
    for (const name of ['alice', 'bob', 'mallory']) generateKey(join(directory, name), 'ed25519');
  });
  afterEach(() => world?.stop());
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  const writeSigners = (signers: Partial<ConfigSigners> = {}): void => {
    const content = formatSigners({ allowedSigners: line('alice') + line('bob'), revokedKeys: null, limits: null, ...signers });
    world.host.files.set(signersFile(AGENT_DIRECTORY), { type: 'file', mode: 0o600, owner: 'root:root', content });
  };
  const begin = (signers: Partial<ConfigSigners> = {}, verifies = run): void => {
    world = newWorld({ timing: { trialMs: 60_000 }, signersFile: signersFile(AGENT_DIRECTORY), verifies });
    writeSigners(signers);
    world.start();
  };
  interface Signing {
    readonly by?: string;
    readonly revision?: number;
    readonly name?: string;
    readonly key?: string;
    readonly nodes?: readonly string[];
    readonly namespace?: string;
  }
  const sign = async (
    data: Data,
    { by = 'alice', revision = 1, name = 'a', key = 'kubelet', nodes = ['*'], namespace }: Signing = {},
  ): Promise<Data> => {
    const signs: typeof signWithSshKeygen = (text, signing) =>
      signWithSshKeygen(text, { ...signing, ...(namespace === undefined ? {} : { namespace }) });
    const ports = { signWithSsh: signs, clock: world.clock };
    return {
      ...data,
      ...(await signConfig(ports, { namespace: NAMESPACE, name, key, nodes, data }, { key: join(directory, by), revision })),
    };
  };
  let count = 0;
  /** Stores a ConfigMap under a name and assigns it. */
  const assign = async (data: Data, name = `stored-${++count}`, key?: string): Promise<string> => {
    await world.cluster.create({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: NAMESPACE }, data });
    await world.assign(name, key);
    return name;
  };
  const runs = (pods: number) =>
    world.until(
      `the kubelet runs maxPods ${pods}`,
      () => world.runs() === pods && world.state?.phase === 'good' && world.state.switching === null,
    );
  /** Waits until the ConfigMap of this name is rejected with the cause. */
  const rejected = async (name: string, cause: RegExp): Promise<void> => {
    let message = '';
    const isRejected = async (): Promise<boolean> => {
      const condition = await world.condition();
      message = String(condition.message);
      const { state } = world;
      return state?.phase === 'rejected' && state.assigned.identity.name === name && condition.reason === 'Rejected' && cause.test(message);
    };
    await world.until(`${name} is rejected with ${String(cause)}`, isRejected);
  };
  /** A signed configuration with maxPods 50 that runs, revision 1. */
  const beginWithGood = async (signers: Partial<ConfigSigners> = {}): Promise<void> => {
    begin(signers);
    await assign(await sign({ kubelet: payload(50) }, { name: `first-${++count}` }), `first-${count}`);
    await runs(50);
  };
  const expectRefused = async (
    data: Data,
    cause: RegExp,
    { name, key }: { readonly name?: string; readonly key?: string } = {},
  ): Promise<void> => {
    const stored = await assign(data, name, key);
    await rejected(stored, cause);
    // The running configuration and the last known good one are kept.
    expect(world.runs()).toBe(50);
    expect(world.state?.lastKnownGood?.identity.name).toMatch(/^first-/);
  };

  it('refuses a ConfigMap without a signature, and accepts a signed one', async () => {
    begin();
    const name = await assign({ kubelet: payload(50) });
    await rejected(name, /^the ConfigMap is not signed, but this node accepts only signed ConfigMaps/);
    expect((await world.status()).error).toMatch(/^failed to verify config: /);
    expect(world.runs()).toBe(110);
    await assign(await sign({ kubelet: payload(50) }, { name: 'b' }), 'b');
    await runs(50);
    expect(JSON.parse(world.host.text(acceptedFile(AGENT_DIRECTORY)))).toMatchObject({
      revision: 1,
      signer: { principal: 'alice@example.com', fingerprint: expect.stringMatching(/^SHA256:/) },
    });
  });

  it('refuses each change of a signed ConfigMap', async () => {
    await beginWithGood();
    const data = await sign({ kubelet: payload(60), 'resolv.conf': 'nameserver 10.0.0.1\n' }, { name: 'c', revision: 2 });
    const { [STATEMENT_KEY]: statement = '', [SIGNATURE_KEY]: signature = '', 'resolv.conf': _removed, ...less } = data;
    await expectRefused({ ...data, kubelet: payload(61) }, /the key "kubelet" of the ConfigMap was changed after signing/, { name: 'c' });
    for (const [changed, cause] of [
      [{ ...data, [`kubelet.node.${NODE}`]: `${OVERLAY}maxPods: 61\n` }, /the key "kubelet\.node\.node-1" of the ConfigMap is not signed/],
      [{ ...less, [STATEMENT_KEY]: statement, [SIGNATURE_KEY]: signature }, /the signed key "resolv\.conf" is missing in the ConfigMap/],
      [{ ...data, [STATEMENT_KEY]: statement.replace('"revision": 2', '"revision": 3') }, /the signature of the ConfigMap is not valid/],
      [{ ...data, [STATEMENT_KEY]: `${statement} ` }, /the signature of the ConfigMap is not valid/],
      [{ ...data, [STATEMENT_KEY]: '{}' }, /is not a statement that this agent can read/],
      [{ ...data, [SIGNATURE_KEY]: 'nothing' }, /not signed by a signer that this node accepts/],
      [{ kubelet: payload(60), [STATEMENT_KEY]: statement }, /the ConfigMap is not signed/],
    ] as const) {
      await world.remove('c');
      await expectRefused(changed, cause, { name: 'c' });
    }
  });

  it('refuses a signature for another ConfigMap, key, node or purpose', async () => {
    await beginWithGood();
    const content = { kubelet: payload(60), other: payload(61) };
    await expectRefused(
      await sign(content, { name: 'd', revision: 2 }),
      /for the ConfigMap kubeletadm-system\/d, not for kubeletadm-system\/e/,
      { name: 'e' },
    );
    await expectRefused(await sign(content, { name: 'f', revision: 2 }), /for the key "kubelet" of the ConfigMap, not for "other"/, {
      name: 'f',
      key: 'other',
    });
    await expectRefused(
      await sign(content, { name: 'g', revision: 2, nodes: ['node-2', 'edge-*'] }),
      /for other nodes \(node-2, edge-\*\), not for node-1/,
      { name: 'g' },
    );
    await expectRefused(await sign(content, { name: 'h', revision: 2, namespace: 'file' }), /the signature of the ConfigMap is not valid/, {
      name: 'h',
    });
    await assign(await sign(content, { name: 'i', revision: 2, nodes: ['edge-*', 'node-*'] }), 'i');
    await runs(60);
  });

  it('refuses unknown, revoked and expired signers, also if they were accepted before', async () => {
    const allowedSigners = line('alice') + line('bob', 'valid-before="20200101" ');
    await beginWithGood({ allowedSigners });
    const content = { kubelet: payload(60) };
    await expectRefused(await sign(content, { name: 'j', revision: 2, by: 'mallory' }), /not signed by a signer that this node accepts/, {
      name: 'j',
    });
    await expectRefused(
      await sign(content, { name: 'k', revision: 2, by: 'bob' }),
      /not signed by a signer that this node accepts: line 2 of the allowed signers: key has expired/,
      { name: 'k' },
    );
    // As dynamic enable does; the agent is not restarted.
    const revokedKeys = `${publicKey('alice')}\n`;
    // The key of bob stays expired until k is no longer assigned: else the agent could accept it at its next try.
    writeSigners({ allowedSigners, revokedKeys });
    await expectRefused(
      await sign(content, { name: 'l', revision: 2, by: 'alice' }),
      /the signature of the ConfigMap is not valid, or its key is revoked on this node/,
      { name: 'l' },
    );
    writeSigners({ revokedKeys });
    await assign(await sign(content, { name: 'm', revision: 2, by: 'bob' }), 'm');
    await runs(60);
  });

  it('refuses an older revision, also after a restart, and accepts the old content with a new signature', async () => {
    await beginWithGood();
    const [first] = (await world.cluster.list({ apiVersion: 'v1', kind: 'ConfigMap', namespace: NAMESPACE })).items;
    await assign(await sign({ kubelet: payload(60) }, { name: 'n', revision: 5 }), 'n');
    await runs(60);
    const replay = async (): Promise<void> => {
      await world.assign(String(first?.metadata.name));
      await rejected(String(first?.metadata.name), /^the signed revision 1 is older than the accepted revision 5\. To return/);
      expect(world.runs()).toBe(60);
    };
    await replay();
    await world.assign(null);
    await world.until('the local configuration runs', () => world.state?.phase === 'local' && world.runs() === 110);
    await world.stop();
    world.start();
    await world.assign(String(first?.metadata.name));
    await rejected(String(first?.metadata.name), /^the signed revision 1 is older than the accepted revision 5/);
    expect(world.runs()).toBe(110);
    // The same number for another content could be used to switch between both.
    const same = await assign(await sign({ kubelet: payload(61) }, { name: 'o', revision: 5 }), 'o');
    await rejected(same, /^the signed revision 5 is that of another ConfigMap that this node accepted/);
    await assign(await sign({ kubelet: payload(50) }, { name: 'p', revision: 6 }), 'p');
    await runs(50);
  });

  it('returns to the previous signed configuration after a failed trial', async () => {
    await beginWithGood();
    const good = String(world.state?.lastKnownGood?.identity.name);
    world.behaviours.set(66, { crashesAfter: 5 });
    await assign(await sign({ kubelet: payload(66) }, { name: 'q', revision: 2 }), 'q');
    await world.until('it rolls back', () => world.state?.phase === 'fallen-back' && world.runs() === 50);
    // The kubelet runs this content already, so nothing is replayed.
    await world.assign(good);
    await runs(50);
    expect(world.state?.phase).toBe('good');
  });

  it('keeps the running configuration when its key expires, and refuses everything that it cannot verify', async () => {
    let isInstalled = true;
    begin({}, (argv, stdin) => (isInstalled ? run(argv, stdin) : { exitCode: 43 }));
    await assign(await sign({ kubelet: payload(50) }, { name: 'first-x' }), 'first-x');
    await runs(50);
    isInstalled = false;
    world.editLocal(payload(111));
    for (let i = 0; i < 200; i++) await new Promise((resolve) => setImmediate(resolve));
    expect(world.state?.phase).toBe('good');
    const data = await sign({ kubelet: payload(60) }, { name: 'r', revision: 2 });
    await expectRefused(data, /cannot be verified on this node: ssh-keygen is not installed/, { name: 'r' });
    isInstalled = true;
    world.host.files.delete(signersFile(AGENT_DIRECTORY));
    await world.remove('r');
    await expectRefused(data, /no signature can be verified, because .*signers\.yaml does not exist/, { name: 'r' });
    writeSigners();
    world.host.files.set(acceptedFile(AGENT_DIRECTORY), { type: 'file', mode: 0o600, owner: 'root:root', content: '{' });
    await world.remove('r');
    await expectRefused(data, /the last accepted revision is unknown/, { name: 'r' });
  });

  it('records the key of a signer, and a pattern of the list not as its name', async () => {
    const anyone = { allowedSigners: `*@example.com ${publicKey('alice')}\n`, limits: { '*@example.com': { fields: ['maxPods'] } } };
    await beginWithGood(anyone);
    const accepted = JSON.parse(world.host.text(acceptedFile(AGENT_DIRECTORY)));
    expect(accepted.signer).toEqual({ fingerprint: expect.stringMatching(/^SHA256:\S{43}$/), pattern: '*@example.com' });
    const data = await sign({ kubelet: `${OVERLAY}registryPullQPS: 7\n` }, { name: 'v', revision: 2 });
    await expectRefused(data, /any signer that matches \*@example\.com may not set registryPullQPS/, { name: 'v' });
  });

  it('limits each signer to its fields and its class', async () => {
    const limits = { 'alice@example.com': {}, 'bob@example.com': { allow: 'new-pods-only', fields: ['maxPods', 'evictionHard'] } } as const;
    await beginWithGood({ limits });
    const overlay = (fields: string): Data => ({ kubelet: `${OVERLAY}${fields}` });
    const byBob = { by: 'bob', revision: 2 } as const;
    await expectRefused(
      await sign(overlay('maxPods: 60\nregistryPullQPS: 7\n'), { ...byBob, name: 's' }),
      /the signer bob@example\.com may not set registryPullQPS/,
      { name: 's' },
    );
    await expectRefused(
      await sign({ kubelet: `${HEADER}maxPods: 110\nreadOnlyPort: 10255\n` }, { ...byBob, name: 't' }),
      /the signer bob@example\.com may make only changes up to class new-pods-only on this node, not readOnlyPort \(unsafe\)/,
      { name: 't' },
    );
    writeSigners({ limits: { 'alice@example.com': {} } });
    await expectRefused(
      await sign(overlay('maxPods: 60\n'), { ...byBob, name: 'u' }),
      /the signer policy of this node has no entry for bob@example\.com \(SHA256:/,
      { name: 'u' },
    );
    writeSigners({ limits });
    await assign(await sign(overlay('maxPods: 60\n'), { ...byBob, name: 'v' }), 'v');
    await runs(60);
  });
});
