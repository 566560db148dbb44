import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { knownHostsStore } from '../../src/ssh/adapters/known-hosts.ts';
import {
  checkHostKey,
  type HostKey,
  indexKnownHosts,
  knownHostsNames,
  parseKnownHosts,
  renderKnownHostsLine,
} from '../../src/ssh/known-hosts.ts';
import { requirement } from '../support/requirement.ts';
import { sshTargetFor } from '../support/ssh-target.ts';
import { numberOfRuns } from '../support/thorough.ts';

const KEY: HostKey = { type: 'ssh-ed25519', blob: 'AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl' };
const OTHER: HostKey = { type: 'ssh-ed25519', blob: 'AAAAC3NzaC1lZDI1NTE5AAAAIFudVSW1tSOXjYN3CbT/7AzaYDqWrlbYoZIVn4awy5qO' };
const noSshKeygen = requirement(
  'known_hosts as ssh-keygen reads them',
  spawnSync('ssh-keygen', ['-?']).error === undefined ? null : 'ssh-keygen is not installed',
);

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'kubeletadm-known-hosts-'));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

describe('known_hosts, compared with ssh-keygen -F', () => {
  const NAMES = ['n1', 'n2', 'node-1.example.com', '10.0.0.1', 'fd00::1', '[n1]:2222', '[10.0.0.1]:2222', '[fd00::1]:2222'] as const;
  const name = fc.constantFrom(...NAMES);
  const pattern = fc.oneof(
    { weight: 4, arbitrary: name },
    {
      weight: 2,
      arbitrary: fc.constantFrom('n?', '*', '*.example.com', '10.0.0.*', '[*]:2222', 'N1', 'node-?.EXAMPLE.com', '?1', 'fd00::*'),
    },
    { weight: 1, arbitrary: name.map((each) => `!${each}`) },
    { weight: 1, arbitrary: fc.constantFrom('!n?', '!*.example.com', '', '!') },
  );
  const hosts = fc.oneof(
    { weight: 3, arbitrary: fc.array(pattern, { minLength: 1, maxLength: 3 }).map((list) => list.join(',')) },
    {
      weight: 1,
      arbitrary: fc
        .tuple(name, fc.uint8Array({ minLength: 20, maxLength: 20 }))
        .map(([each, salt]) => renderKnownHostsLine(each, KEY, salt).split(' ')[0] ?? ''),
    },
    { weight: 1, arbitrary: fc.constantFrom('|1|short|hash', '|2|x|y', '|1|', '#n1', '@n1') },
  );
  const line = fc
    .record({
      indent: fc.constantFrom('', '', ' ', '\t'),
      marker: fc.constantFrom('', '', '', '', '@revoked ', '@cert-authority ', '@other ', '@revoked @revoked '),
      hosts,
      gap: fc.constantFrom(' ', '\t', '  '),
      // ssh-keygen -F lists lines with a broken key without reading it; ssh skips them.
      key: fc.constantFrom(`${KEY.type} ${KEY.blob}`, `${KEY.type} ${KEY.blob} a comment`, `${KEY.type}\t${KEY.blob} \t`),
    })
    .map(({ indent, marker, hosts: each, gap, key }) => `${indent}${marker}${each}${gap}${key}`);
  const file = fc.array(fc.oneof({ weight: 8, arbitrary: line }, { weight: 1, arbitrary: fc.constantFrom('', '# comment', '   ') }), {
    maxLength: 12,
  });

  it.skipIf(noSshKeygen)('finds the same lines (skipped without ssh-keygen)', () => {
    const path = join(directory, 'generated');
    fc.assert(
      fc.property(file, name, (lines, desired) => {
        writeFileSync(path, `${lines.join('\n')}\n`);
        const { stdout } = spawnSync('ssh-keygen', ['-F', desired, '-f', path], { encoding: 'utf8' });
        const theirs = [...stdout.matchAll(/found: line (\d+)( REVOKED| CA)?/g)].map(([, number, mark = '']) => `${number}${mark}`);
        const marks = { none: '', revoked: ' REVOKED', 'cert-authority': ' CA' };
        const ours = indexKnownHosts(parseKnownHosts(readFileSync(path, 'utf8'), path))
          .find(desired)
          .map((entry) => `${entry.line}${marks[entry.marker]}`);
        expect(ours).toEqual(theirs);
      }),
      { numRuns: numberOfRuns(500) },
    );
  });

  it.skipIf(noSshKeygen)('writes names that ssh-keygen finds (skipped without ssh-keygen)', () => {
    const path = join(directory, 'written');
    for (const salt of [null, Buffer.alloc(20, 3)]) {
      writeFileSync(path, renderKnownHostsLine('[fd00::1]:2222', KEY, salt));
      expect(spawnSync('ssh-keygen', ['-F', '[fd00::1]:2222', '-f', path]).status).toBe(0);
    }
  });
});

describe('knownHostsStore', () => {
  const validate = async (
    store: ReturnType<typeof knownHostsStore>,
    target: Parameters<typeof knownHostsNames>[0] & Parameters<typeof store.knownHosts>[0],
  ) => checkHostKey(await store.knownHosts(target), knownHostsNames(target), KEY).kind;

  it('adds a key to a new private file, and finds it afterwards', async () => {
    const path = join(directory, 'new/.ssh/known_hosts');
    const target = sshTargetFor({ directory, port: 2222, userKnownHostsFiles: [path] });
    const store = knownHostsStore();
    expect(await validate(store, target)).toBe('unknown');
    expect(await store.save(target, KEY)).toBe(path);
    expect(readFileSync(path, 'utf8')).toBe(`[127.0.0.1]:2222 ${KEY.type} ${KEY.blob}\n`);
    expect([statSync(path).mode & 0o777, statSync(join(directory, 'new/.ssh')).mode & 0o777]).toEqual([0o600, 0o700]);
    expect(await validate(store, target)).toBe('known');
  });

  it('hashes the name when HashKnownHosts is set', async () => {
    const path = join(directory, 'hashed');
    const target = sshTargetFor({ directory, port: 22, userKnownHostsFiles: [path], hashKnownHosts: true });
    const store = knownHostsStore();
    await store.save(target, KEY);
    expect(readFileSync(path, 'utf8')).toMatch(/^\|1\|[^|]+\|[^|]+ ssh-ed25519 /);
    expect(await validate(store, target)).toBe('known');
  });

  it('keeps a last line without newline intact', async () => {
    const path = join(directory, 'no-newline');
    writeFileSync(path, `n9 ${OTHER.type} ${OTHER.blob}`);
    await knownHostsStore().save(sshTargetFor({ directory, port: 22, userKnownHostsFiles: [path] }), KEY);
    expect(readFileSync(path, 'utf8').split('\n')).toEqual([`n9 ${OTHER.type} ${OTHER.blob}`, `127.0.0.1 ${KEY.type} ${KEY.blob}`, '']);
  });

  it('keeps every line of many simultaneous additions', async () => {
    const path = join(directory, 'many');
    const store = knownHostsStore();
    const targets = Array.from({ length: 50 }, (_, i) =>
      sshTargetFor({ directory, hostName: `n${i}`, port: 22, userKnownHostsFiles: [path] }),
    );
    await Promise.all(targets.map((target) => store.save(target, KEY)));
    expect(await Promise.all(targets.map((target) => validate(store, target)))).toEqual(targets.map(() => 'known'));
  });

  it('reads several files, and reloads them after changes by others', async () => {
    const user = join(directory, 'user');
    const global = join(directory, 'global');
    const target = sshTargetFor({ directory, port: 22, userKnownHostsFiles: [user], globalKnownHostsFiles: [global] });
    const store = knownHostsStore();
    writeFileSync(global, `127.0.0.1 ${KEY.type} ${KEY.blob}\n`);
    expect(await validate(store, target)).toBe('known');
    writeFileSync(global, `@revoked 127.0.0.1 ${KEY.type} ${KEY.blob}\n`);
    expect(await validate(store, target)).toBe('revoked');
    writeFileSync(user, `127.0.0.1 ${KEY.type} ${KEY.blob}\n`);
    expect(await validate(store, target)).toBe('revoked');
  });

  it('writes no file when none is configured', async () => {
    expect(await knownHostsStore().save(sshTargetFor({ directory, port: 22, userKnownHostsFiles: [] }), KEY)).toBeNull();
  });

  it('does not treat an unreadable file as an empty one', async () => {
    const target = sshTargetFor({ directory, port: 22, userKnownHostsFiles: [directory] });
    await expect(knownHostsStore().knownHosts(target)).rejects.toThrow(
      `node-1: cannot check the host key, because ${directory} cannot be read: the path is a directory`,
    );
  });
});
