import { describe, expect, it } from 'vitest';
import { checkpointStore } from '../../../src/dynamic/agent/checkpoint-store.ts';
import { newAgentState } from '../../../src/dynamic/agent/state.ts';
import { checkpointDirectory, hashOfFiles, pointerFile, stateFiles } from '../../../src/kubelet/node-agent/layout.ts';
import { type FakeHost, fakeHost } from '../../support/fake-host.ts';

const D = '/var/lib/kubelet/kubeletadm-agent';
const IDENTITY = { namespace: 'kube-system', name: 'a', kubeletConfigKey: 'kubelet', uid: 'u', resourceVersion: '1' };
const FILES = { 'kubelet.yaml': 'kind: KubeletConfiguration\n', 'resolv.conf': 'nameserver 10.0.0.1\n' };
const HASH = hashOfFiles(FILES);

function newHost(): FakeHost {
  const host: FakeHost = fakeHost({
    commands: {
      rm: (argv) => {
        for (const path of [...host.files.keys()]) if (path === argv[3] || path.startsWith(`${argv[3]}/`)) host.files.delete(path);
        return {};
      },
    },
  });
  return host;
}

function corrupt(host: FakeHost, path: string, content: string): void {
  const found = host.files.get(path);
  if (found === undefined) throw new Error(`no ${path}`);
  host.files.set(path, { ...found, content });
}

describe('the checkpoint store', () => {
  it('is empty before it is used', async () => {
    const loaded = await checkpointStore(newHost(), D).load();
    expect(loaded).toEqual({ state: null, generation: 0, access: [], damaged: [], checkpoints: [], pointer: null });
  });

  it('returns the stored content, readable only by root', async () => {
    const host = newHost();
    const store = checkpointStore(host, D);
    const state = newAgentState(5);
    await store.saveState(state, 1);
    await store.saveCheckpoint(HASH, FILES, { identity: IDENTITY, sets: null });
    await host.perform(store.pointTo(HASH));
    const loaded = await checkpointStore(host, D).load();
    expect(loaded).toMatchObject({ state, generation: 1, damaged: [], pointer: HASH });
    expect(loaded.checkpoints).toMatchObject([{ hash: HASH, files: FILES, manifest: { identity: IDENTITY } }]);
    for (const [path, { type, mode }] of host.files) if (path.startsWith(D)) expect(mode).toBe(type === 'file' ? 0o600 : 0o700);
    await host.perform(store.pointTo(null));
    expect(await store.readPointer()).toBeNull();
  });

  it.each([0, 1])('reads the other copy when copy %i of the state is damaged', async (damaged) => {
    const host = newHost();
    const store = checkpointStore(host, D);
    await store.saveState(newAgentState(1), 1);
    await store.saveState(newAgentState(2), 2);
    const path = stateFiles(D)[damaged] as string;
    for (const text of ['', host.text(path).slice(0, 40), host.text(path).replace('"since":', '"since":9'), '{}']) {
      corrupt(host, path, text);
      const loaded = await store.load();
      expect(loaded.state?.since).toBe(damaged === 0 ? 1 : 2);
      expect(loaded.damaged).toEqual([path]);
    }
  });

  it('has no state when both copies are damaged', async () => {
    const host = newHost();
    const store = checkpointStore(host, D);
    await store.saveState(newAgentState(1), 1);
    await store.saveState(newAgentState(2), 2);
    for (const path of stateFiles(D)) corrupt(host, path, 'torn');
    expect(await store.load()).toMatchObject({ state: null, damaged: [...stateFiles(D)] });
  });

  it.each([
    ['truncated', (host: FakeHost, at: string) => corrupt(host, `${at}/kubelet.yaml`, 'kind: Kube')],
    ['changed', (host: FakeHost, at: string) => corrupt(host, `${at}/resolv.conf`, 'nameserver 6.6.6.6\n')],
    ['without a file', (host: FakeHost, at: string) => void host.files.delete(`${at}/resolv.conf`)],
    ['without a manifest', (host: FakeHost, at: string) => void host.files.delete(`${at}/manifest.json`)],
    [
      'with a manifest that names another directory',
      (host: FakeHost, at: string) =>
        corrupt(host, `${at}/manifest.json`, host.text(`${at}/manifest.json`).replace('resolv.conf', '../../x')),
    ],
  ])('detects a checkpoint that is %s, and corrects it', async (_, damage) => {
    const host = newHost();
    const store = checkpointStore(host, D);
    await store.saveCheckpoint(HASH, FILES, { identity: IDENTITY, sets: null });
    damage(host, checkpointDirectory(D, HASH));
    expect(await store.readCheckpoint(HASH)).toBeNull();
    expect((await store.load()).checkpoints).toMatchObject([{ hash: HASH, files: null }]);
    await store.saveCheckpoint(HASH, FILES, { identity: IDENTITY, sets: null });
    expect(await store.readCheckpoint(HASH)).toEqual(FILES);
  });

  describe('with the keys of the ConfigMap', () => {
    const DATA = { kubelet: 'kind: KubeletConfigurationOverlay\n', 'kubelet.node.other': 'maxPods: 5\n', data: '1', 'manifest.json': '' };
    const at = `${checkpointDirectory(D, HASH)}/..data`;
    const textsBelow = (host: FakeHost): Readonly<Record<string, string>> =>
      Object.fromEntries(
        [...host.files].flatMap(([path, { content }]) => (path.startsWith(`${at}/`) ? [[path.slice(at.length + 1), content ?? '']] : [])),
      );

    it('stores each in a file that only root can read, outside of the hash', async () => {
      const host = newHost();
      const store = checkpointStore(host, D);
      await store.saveCheckpoint(HASH, FILES, { identity: IDENTITY, sets: null, data: DATA });
      expect(textsBelow(host)).toEqual(DATA);
      expect(host.files.get(at)?.mode).toBe(0o700);
      expect(host.files.get(`${at}/kubelet`)?.mode).toBe(0o600);
      const [stored] = (await store.load()).checkpoints;
      expect(stored).toMatchObject({
        hash: HASH,
        files: FILES,
        manifest: { keys: ['data', 'kubelet', 'kubelet.node.other', 'manifest.json'] },
      });
    });

    it('follows another version with the same payload, and does not write the payload again', async () => {
      const host = newHost();
      const store = checkpointStore(host, D);
      await store.saveCheckpoint(HASH, FILES, { identity: IDENTITY, sets: null });
      expect(textsBelow(host)).toEqual({});
      await store.saveCheckpoint(HASH, FILES, { identity: IDENTITY, sets: null, data: DATA });
      const written = host.performed.length;
      const { data: _removed, ...rest } = DATA;
      const next = { ...rest, kubelet: 'changed' };
      await store.saveCheckpoint(HASH, FILES, { identity: { ...IDENTITY, resourceVersion: '2' }, sets: null, data: next });
      expect(textsBelow(host)).toEqual(next);
      const paths = host.performed.slice(written).map((operation) => ('path' in operation ? operation.path : ''));
      expect(paths).toEqual([`${at}/kubelet`, `${at}/data`, `${checkpointDirectory(D, HASH)}/manifest.json`]);
      await store.saveCheckpoint(HASH, FILES, { identity: { ...IDENTITY, resourceVersion: '2' }, sets: null, data: next });
      expect(host.performed).toHaveLength(written + paths.length);
    });

    it('keeps the checkpoint valid when a key is damaged, corrects it, and removes all with the checkpoint', async () => {
      const host = newHost();
      const store = checkpointStore(host, D);
      const origin = { identity: IDENTITY, sets: null, data: DATA };
      await store.saveCheckpoint(HASH, FILES, origin);
      corrupt(host, `${at}/kubelet`, 'torn');
      host.files.delete(`${at}/data`);
      expect(await store.readCheckpoint(HASH)).toEqual(FILES);
      await store.saveCheckpoint(HASH, FILES, origin);
      expect(textsBelow(host)).toEqual(DATA);
      await store.collect([], 0);
      expect(textsBelow(host)).toEqual({});
    });
  });

  it('keeps the checkpoints in use and the newest of the others', async () => {
    const host = newHost();
    const store = checkpointStore(host, D);
    const hashes: string[] = [];
    for (let i = 0; i < 6; i++) {
      const files = { 'kubelet.yaml': `maxPods: ${i}\n` };
      hashes.push(hashOfFiles(files));
      await store.saveCheckpoint(hashOfFiles(files), files, { identity: IDENTITY, sets: null });
    }
    expect((await store.collect([hashes[0] as string], 2)).toSorted()).toEqual(hashes.slice(1, 4).toSorted());
    const left = (await store.load()).checkpoints;
    expect(left.map(({ hash }) => hash).toSorted()).toEqual([hashes[0], hashes[4], hashes[5]].toSorted());
    expect(left.every(({ files }) => files !== null)).toBe(true);
  });

  it('is consistent after a write fails at any point', async () => {
    for (let n = 0; ; n++) {
      const host = newHost();
      const store = checkpointStore(host, D);
      await store.saveState(newAgentState(1), 1);
      await host.perform(store.pointTo(null));
      const before = host.performed.length;
      host.loseConnectionAfter(n);
      const work = async () => {
        await store.saveCheckpoint(HASH, FILES, { identity: IDENTITY, sets: null });
        await store.saveState(newAgentState(2), 2);
        await host.perform(store.pointTo(HASH));
      };
      const isWhole = await work().then(
        () => true,
        () => false,
      );
      const loaded = await checkpointStore(host, D).load();
      expect([1, 2]).toContain(loaded.state?.since);
      expect(loaded.damaged).toEqual([]);
      // The checkpoint of the pointer is complete.
      if (loaded.pointer !== null) expect(loaded.checkpoints.find(({ hash }) => hash === loaded.pointer)?.files).toEqual(FILES);
      if (isWhole) {
        expect(host.texts()[pointerFile(D)]).toContain(HASH);
        expect(n).toBe(host.performed.length - before);
        return;
      }
    }
  });

  it('keeps the existing checkpoints when the disk is full', async () => {
    const host = newHost();
    const store = checkpointStore(host, D);
    await store.saveState(newAgentState(1), 1);
    host.failAt(1);
    await expect(store.saveState(newAgentState(2), 2)).rejects.toThrow();
    expect((await store.load()).state?.since).toBe(1);
  });
});
