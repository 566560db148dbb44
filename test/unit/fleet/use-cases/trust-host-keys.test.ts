import { describe, expect, it } from 'vitest';
import { AppError } from '../../../../src/base/errors.ts';
import type { FleetFilePorts, HostKeySource } from '../../../../src/fleet/ports.ts';
import { hostKeyState, type TrustRequest, trustHostKeys } from '../../../../src/fleet/use-cases/trust-host-keys.ts';
import type { HostKey, HostKeyVerdict, KnownHostsEntry } from '../../../../src/ssh/known-hosts.ts';
import type { SshEnvironment } from '../../../../src/ssh/resolve-target.ts';

const KEY: HostKey = { type: 'ssh-ed25519', blob: 'AAAA' };
const ENTRY: KnownHostsEntry = { ...KEY, file: 'known_hosts', line: 1, marker: 'none', hosts: 'a' };
const ENVIRONMENT: SshEnvironment = {
  homeDirectory: '/root',
  workingDirectory: '/root',
  userName: 'root',
  userId: 0,
  localHostName: 'local',
  variables: {},
};
const VERDICTS: Readonly<Record<HostKeyVerdict['kind'], HostKeyVerdict>> = {
  known: { kind: 'known' },
  unknown: { kind: 'unknown' },
  mismatch: { kind: 'mismatch', entry: ENTRY },
  revoked: { kind: 'revoked', entry: { ...ENTRY, marker: 'revoked' } },
};

/** The verdict on the key of a host, or why the key cannot be read or saved. */
type Shown = HostKeyVerdict['kind'] | 'unreachable' | 'unknown, read-only' | 'unknown, without known_hosts';

interface World {
  readonly services: FleetFilePorts & HostKeySource & { readonly signal: AbortSignal };
  /** The calls, as `inspect a` and `save a`. */
  readonly calls: readonly string[];
}

function world(shown: Readonly<Record<string, Shown>>, fleet = `hosts: [${Object.keys(shown).map((name) => `{name: ${name}}`)}]`): World {
  const calls: string[] = [];
  const openHostKeys: HostKeySource['openHostKeys'] = async () => ({
    config: { files: [], environment: ENVIRONMENT, exec: () => false },
    overrides: {},
    inspect: async ({ name }) => {
      calls.push(`inspect ${name}`);
      const kind = shown[name] ?? 'unreachable';
      if (kind === 'unreachable') throw new AppError({ code: 'HOST_UNREACHABLE', host: name, message: 'connection refused' });
      return { key: KEY, verdict: VERDICTS[kind.split(',')[0] as HostKeyVerdict['kind']] };
    },
    save: async ({ name }) => {
      calls.push(`save ${name}`);
      if (shown[name] === 'unknown, read-only') throw Object.assign(new Error('read-only'), { code: 'EROFS' });
      return shown[name] === 'unknown, without known_hosts' ? null : 'known_hosts';
    },
  });
  const input = { readText: async () => `apiVersion: kubeletadm.dev/v1alpha1\nkind: Fleet\n${fleet}\n` };
  const services: Partial<World['services']> = {
    env: {},
    input: input as unknown as FleetFilePorts['input'],
    absolutePath: (path) => `/here/${path}`,
    openHostKeys,
    signal: new AbortController().signal,
  };
  return { services: services as World['services'], calls };
}

function requestOf(changes: Partial<TrustRequest> = {}): TrustRequest {
  return {
    selection: { limit: [], groups: [] },
    connection: { identityFiles: [], password: 'environment', sudoPassword: 'environment' },
    parallel: 1,
    yes: false,
    run: { dryRun: false },
    ...changes,
  };
}

const refuseToAsk: Parameters<typeof trustHostKeys>[2] = async () => expect.unreachable('the operator is asked');

describe('trustHostKeys', () => {
  it('records unknown keys without asking with --yes, and leaves known ones', async () => {
    const { services, calls } = world({ a: 'unknown', b: 'known' });
    const { findings, hasUnknown, failure } = await trustHostKeys(services, requestOf({ yes: true }), refuseToAsk);
    expect(findings.map((finding) => [finding.target.name, hostKeyState(finding), finding.recorded])).toEqual([
      ['a', 'recorded', 'known_hosts'],
      ['b', 'known', undefined],
    ]);
    expect([hasUnknown, failure]).toEqual([false, null]);
    expect(calls).toEqual(['inspect a', 'inspect b', 'save a']);
  });

  it.each([true, false])('records nothing and asks nothing with --dry-run (--yes: %s)', async (yes) => {
    const { services, calls } = world({ a: 'unknown' });
    expect(await trustHostKeys(services, requestOf({ yes, run: { dryRun: true } }), refuseToAsk)).toMatchObject({
      hasUnknown: true,
      failure: null,
    });
    expect(calls).toEqual(['inspect a']);
  });

  it.each([true, false])('asks once about the unknown keys alone, and does as the operator answers: %s', async (answer) => {
    const { services, calls } = world({ a: 'unknown', b: 'known', c: 'unknown', d: 'mismatch' });
    const asked: (readonly string[])[] = [];
    const { hasUnknown } = await trustHostKeys(services, requestOf(), async (unknown) => {
      asked.push(unknown.map(({ target }) => target.name));
      return answer;
    });
    expect(asked).toEqual([['a', 'c']]);
    expect(calls.filter((call) => call.startsWith('save'))).toEqual(answer ? ['save a', 'save c'] : []);
    expect(hasUnknown).toBe(!answer);
  });

  it('does not ask if no key is unknown', async () => {
    const { services } = world({ a: 'known' });
    expect(await trustHostKeys(services, requestOf(), refuseToAsk)).toMatchObject({ hasUnknown: false, failure: null });
  });

  it('records nothing if the operator cannot be asked', async () => {
    const { services, calls } = world({ a: 'unknown' });
    await expect(trustHostKeys(services, requestOf(), async () => null)).rejects.toMatchObject({ code: 'USAGE', exitCode: 2 });
    expect(calls).toEqual(['inspect a']);
  });

  it('records the key of a jump host before it connects through it, and asks for each round', async () => {
    const fleet = 'hosts: [{name: inside, ssh: {bastion: jump}}]';
    const { services, calls } = world({ jump: 'unknown', inside: 'unknown' }, fleet);
    const asked: (readonly string[])[] = [];
    await trustHostKeys(services, requestOf(), async (unknown) => {
      asked.push(unknown.map(({ target }) => target.name));
      return true;
    });
    expect(calls).toEqual(['inspect jump', 'save jump', 'inspect inside', 'save inside']);
    expect(asked).toEqual([['jump'], ['inside']]);
  });

  it.each<[Shown, string, string]>([
    ['mismatch', 'mismatch', 'HOST_KEY_MISMATCH'],
    ['revoked', 'revoked', 'HOST_KEY_REVOKED'],
    ['unreachable', 'failed', 'HOST_UNREACHABLE'],
    ['unknown, read-only', 'failed', 'HOST_KEY_NOT_ADDED'],
    ['unknown, without known_hosts', 'failed', 'HOST_KEY_NOT_ADDED'],
  ])('fails for a key that is %s: with exit code 1 if no key is trusted, otherwise 4', async (kind, state, code) => {
    for (const [others, exitCode] of [
      [{}, 1],
      [{ b: 'known' }, 4],
      [{ b: 'unknown' }, 4],
    ] as const) {
      const { services, calls } = world({ a: kind, ...others });
      const { findings, failure } = await trustHostKeys(services, requestOf({ yes: true }), refuseToAsk);
      expect(findings.map(hostKeyState)[0]).toBe(state);
      expect(failure).toMatchObject({ code, exitCode, problems: [{ host: 'a' }] });
      if (!kind.startsWith('unknown')) expect(calls).not.toContain('save a');
    }
  });
});
