import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { isAppError } from '../../src/base/errors.ts';
import type { Host } from '../../src/host/access/host.ts';
import { HostLockedError } from '../../src/host/commit/commit-problems.ts';
import { hostOverTransport } from '../../src/host/host-over-transport.ts';
import type { LockRequest } from '../../src/host/operation/operation.ts';
import { requirement } from '../support/requirement.ts';
import { shellTransport } from '../support/shell-transport.ts';
import { ofThisProject, SHELLS } from '../support/shells.ts';

describe.each(ofThisProject(SHELLS))('host lock in $name', (shell) => {
  describe.skipIf(requirement(`the lock of a host in ${shell.name}`, shell.missing))('here', () => {
    let top = '';
    let root = '';
    let host: Host;
    let nonces = 0;

    beforeAll(() => {
      top = mkdtempSync(join(tmpdir(), 'host-lock-'));
    });
    afterAll(() => rmSync(top, { recursive: true, force: true }));
    beforeEach(() => {
      root = mkdtempSync(join(top, 'root-'));
      const options = shell.options(top);
      const transport = shellTransport({ ...options, env: { ...options.env, KUBELETADM_ROOT: root } });
      host = hostOverTransport(transport, { nonce: () => `nonce${++nonces}` });
    });

    const file = (): string => join(root, 'run/kubeletadm.lock');
    const take = (id: string, more: Partial<LockRequest> = {}): Promise<void> => {
      const owner = { id, name: `${id}@desk`, processId: 7, machine: 'desk/1' };
      return host.perform([
        { kind: 'take-lock', lock: { owner, seconds: 100, breaks: { kind: 'none' }, ...more } },
        { kind: 'write-file', path: `/did-${id}`, mode: 0o644, owner: 'root:root', content: 'x\n' },
      ]);
    };
    const release = (id: string): Promise<void> => host.perform([{ kind: 'release-lock', id }]);
    const edit = (from: RegExp, to: string): void => writeFileSync(file(), readFileSync(file(), 'utf8').replace(from, to));

    it('excludes others, names its holder, and stops the operations that follow a failed acquisition', async () => {
      await take('a');
      const error: unknown = await take('b').catch((refused: unknown) => refused);
      if (!(error instanceof HostLockedError)) throw error;
      expect(error.holder).toMatchObject({ id: 'a', name: 'a@desk', processId: 7, machine: 'desk/1' });
      expect(error.holder.secondsLeft).toBeGreaterThan(90);
      expect(Math.abs(error.holder.since - Date.now() / 1000)).toBeLessThan(30);
      expect(readdirSync(root).sort()).toEqual(['did-a', 'run']);
      expect(readdirSync(join(root, 'run'))).toEqual(['kubeletadm.lock']);
    });

    it('is refreshed by its owner, and released only by its owner', async () => {
      await take('a');
      await take('a', { seconds: 500 });
      expect(readFileSync(file(), 'utf8')).toContain('seconds 500\n');
      await release('b');
      expect(existsSync(file())).toBe(true);
      await release('a');
      expect(readdirSync(join(root, 'run'))).toEqual([]);
      await release('a');
    });

    it.each<[string, () => void, Partial<LockRequest>]>([
      ['it has expired', () => edit(/^ends .*$/m, 'ends 1'), {}],
      ['the host was rebooted', () => edit(/^boot .*$/m, 'boot another'), {}],
      ['the lock file is unreadable', () => writeFileSync(file(), ''), {}],
      ['the request breaks the lock of that holder', () => undefined, { breaks: { kind: 'id', id: 'a' } }],
      ['the request breaks any lock', () => undefined, { breaks: { kind: 'any' } }],
    ])('is acquired when %s', async (_, change, more) => {
      await take('a');
      change();
      await take('b', more);
      expect(readFileSync(file(), 'utf8')).toMatch(/^id b\n/);
      expect(readdirSync(join(root, 'run'))).toEqual(['kubeletadm.lock']);
    });

    it('is not broken when another run holds it than the named one', async () => {
      await take('c');
      await expect(take('b', { breaks: { kind: 'id', id: 'a' } })).rejects.toMatchObject({ code: 'HOST_LOCKED' });
    });

    it.each(['free', 'stale'])('is acquired by exactly one of many simultaneous runs when it is %s', { timeout: 60_000 }, async (state) => {
      if (state === 'stale') {
        await take('old');
        edit(/^ends .*$/m, 'ends 1');
      }
      const ids = Array.from({ length: 12 }, (_, i) => `run${i}`);
      const results = await Promise.allSettled(ids.map((id) => take(id)));
      const won = ids.filter((_, i) => results[i]?.status === 'fulfilled');
      const others = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []));
      expect(won).toHaveLength(1);
      expect(others.filter((reason) => !isAppError(reason, 'HOST_LOCKED'))).toEqual([]);
      expect(readFileSync(file(), 'utf8')).toMatch(new RegExp(`^id ${won[0]}\\n`));
      expect(readdirSync(join(root, 'run'))).toEqual(['kubeletadm.lock']);
      expect(readdirSync(root).filter((name) => name.startsWith('did-run'))).toEqual([`did-${won[0]}`]);
    });
  });
});
