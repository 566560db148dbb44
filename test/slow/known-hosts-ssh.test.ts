import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isAppError } from '../../src/base/errors.ts';
import { knownHostsStore } from '../../src/ssh/adapters/known-hosts.ts';
import { sshTransport } from '../../src/ssh/adapters/transport-ssh.ts';
import { parseKnownHosts, renderKnownHostsLine } from '../../src/ssh/known-hosts.ts';
import type { SshTarget } from '../../src/ssh/target.ts';
import { requirement } from '../support/requirement.ts';
import { sshTargetFor } from '../support/ssh-target.ts';
import { generateKey, type HostKeyType, type Sshd, sshdMissing, startSshd } from '../support/sshd.ts';
import { numberOfRuns } from '../support/thorough.ts';

const CASES = numberOfRuns(500);
const AT_A_TIME = 8;
const TYPES: readonly HostKeyType[] = ['ed25519', 'ecdsa', 'rsa'];

/** Content of the files, and the host name. Names are generated once the port is known. */
interface Case {
  readonly user: readonly Line[];
  readonly second: readonly Line[];
  readonly global: readonly Line[];
  readonly target: 'address' | 'name' | 'alias';
}

interface Line {
  readonly marker: string;
  readonly hosts: readonly string[];
  readonly salt: Uint8Array | null;
  readonly key: readonly [HostKeyType, 'own' | 'other' | 'broken'];
  readonly separator: string;
  readonly comment: string;
}

/** Placeholders for the port, and for the name under which the host's keys are looked up. */
const [PORT, SELF] = ['P', 'SELF'];
const NAMES = ['127.0.0.1', '[127.0.0.1]:P', 'localhost', '[localhost]:P', 'edge-1', '[edge-1]:P', '10.9.9.9', '[127.0.0.1]:22'];
const PATTERNS = [
  '*',
  '127.0.0.*',
  '[127.0.0.?]:P',
  '[*]:P',
  'local*',
  '[local*]:*',
  'edge-?',
  'EDGE-1',
  '[LocalHost]:P',
  '?????????',
  '!x',
];
const NEGATED = ['![127.0.0.1]:P', '!127.0.0.1', '!edge-1', '!*', '!local*', '![*]:P'];

const line: fc.Arbitrary<Line> = fc.record({
  marker: fc.constantFrom('', '', '', '', '@revoked ', '@revoked ', '@cert-authority ', '@other '),
  hosts: fc.array(
    fc.oneof(
      { weight: 4, arbitrary: fc.constant(SELF) },
      { weight: 4, arbitrary: fc.constantFrom(...NAMES) },
      { weight: 2, arbitrary: fc.constantFrom(...PATTERNS) },
      { weight: 1, arbitrary: fc.constantFrom(...NEGATED) },
    ),
    { minLength: 1, maxLength: 3 },
  ),
  salt: fc.option(fc.uint8Array({ minLength: 20, maxLength: 20 }), { freq: 3 }),
  key: fc.tuple(
    fc.constantFrom(...TYPES),
    fc.oneof(
      { weight: 4, arbitrary: fc.constant('own' as const) },
      { weight: 3, arbitrary: fc.constantFrom('other' as const, 'broken' as const) },
    ),
  ),
  separator: fc.constantFrom(' ', ' ', '\t', '  '),
  comment: fc.constantFrom('', '', ' user@somewhere', '\t# note'),
});
const file = fc.array(line, { maxLength: 4 });
const cases: fc.Arbitrary<Case> = fc.record({
  user: file,
  second: fc.oneof({ weight: 2, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: file }),
  global: fc.oneof({ weight: 1, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: file }),
  target: fc.constantFrom('address' as const, 'name' as const, 'alias' as const),
});

type Verdict = 'known' | 'unknown' | 'changed' | 'revoked';

describe.skipIf(requirement('known_hosts compared with ssh', sshdMissing))('known_hosts, compared with ssh itself', () => {
  let directory: string;
  let sshd: Sshd;
  const others = new Map<HostKeyType, string>();
  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'kubeletadm-known-hosts-ssh-'));
    sshd = await startSshd({ hostKeys: TYPES, config: ['MaxStartups 100', 'KexAlgorithms curve25519-sha256'] });
    for (const type of TYPES) {
      const path = join(directory, `other-${type}`);
      generateKey(path, type);
      others.set(type, readFileSync(`${path}.pub`, 'utf8').split(' ').slice(0, 2).join(' '));
    }
  });
  afterAll(async () => {
    await sshd?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  function renderLine({ marker, hosts, salt, key: [type, whose], separator, comment }: Line, target: Case['target']): string {
    const self = { address: '[127.0.0.1]:P', name: '[localhost]:P', alias: 'edge-1' }[target];
    const [name = '', blob = ''] = (whose === 'other' ? (others.get(type) ?? '') : sshd.hostKey(type)).split(' ');
    const names = hosts.map((host) => host.replace(SELF, self).replace(PORT, String(sshd.port)));
    const field = salt === null ? names.join(',') : hashed(names[0] ?? '', salt);
    return `${marker}${field}${separator}${name}${separator}${whose === 'broken' ? blob.slice(0, 20) : blob}${comment}\n`;
  }

  function targetOf(one: Case, index: number): SshTarget {
    const write = (name: string, lines: readonly Line[]): string => {
      const path = join(directory, `${index}-${name}`);
      writeFileSync(path, lines.map((each) => renderLine(each, one.target)).join(''));
      return path;
    };
    return sshTargetFor({
      name: `case-${index}`,
      port: sshd.port,
      user: 'no-such-user',
      directory,
      hostName: one.target === 'name' ? 'localhost' : '127.0.0.1',
      hostKeyAlias: one.target === 'alias' ? 'edge-1' : null,
      userKnownHostsFiles: [write('user', one.user), write('second', one.second)],
      globalKnownHostsFiles: [write('global', one.global)],
      addressFamily: 'inet',
      connectTimeoutMs: 60_000,
    });
  }

  it(`gives the verdict of ssh on ${CASES} generated sets of files`, { timeout: 300_000 }, async () => {
    const generated = fc.sample(cases, { numRuns: CASES, seed: 20_240_917 });
    const results: { readonly index: number; readonly ours: Verdict; readonly theirs: Verdict }[] = [];
    const waiting = [...generated.entries()];
    const work = async (): Promise<void> => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        const [index, one] = next;
        const target = targetOf(one, index);
        results.push({ index, theirs: await verdictOfSsh(target), ours: await ourVerdict(target) });
      }
    };
    await Promise.all(Array.from({ length: AT_A_TIME }, work));
    const differing = results
      .filter(({ ours, theirs }) => ours !== theirs)
      .map(({ index, ...verdicts }) => {
        const { user, second, global, target } = generated[index] as Case;
        const show = ({ marker, hosts, salt, key }: Line): string => `${marker}${salt ? `#${hosts[0]}` : hosts.join(',')} ${key.join(' ')}`;
        return { ...verdicts, target, files: [user, second, global].map((lines) => lines.map(show)) };
      });
    expect(differing).toEqual([]);
    if (process.env.SHOW)
      console.log(['known', 'unknown', 'changed', 'revoked'].map((v) => [v, results.filter((r) => r.theirs === v).length]));
    // Every verdict must be frequent: a test in which all were "unknown" would prove nothing.
    const count = (verdict: Verdict): number => results.filter(({ theirs }) => theirs === verdict).length;
    for (const verdict of ['known', 'unknown', 'changed', 'revoked'] as const) expect(count(verdict), verdict).toBeGreaterThan(CASES / 50);
    expect(results).toHaveLength(CASES);
  });
});

const noKeygen = spawnSync('ssh-keygen', ['-?']).error === undefined ? null : 'ssh-keygen is not installed';

describe.skipIf(requirement('the keys of known_hosts as ssh reads them', noKeygen))(
  'the keys of known_hosts, compared with ssh-keygen',
  () => {
    const piece = fc.constantFrom(
      '',
      '',
      '',
      '',
      '',
      '',
      '=',
      '==',
      '!',
      '-',
      '_',
      '.',
      'A',
      'AA',
      'AAAA',
      '\r',
      '\v',
      '\f',
      '\u00a0',
      '\ufeff',
      'é',
    );
    /** Damage to the text of a key by hand, an editor or a broken transfer. */
    const damage = fc
      .record({
        cut: fc.constantFrom(0, 0, 0, 1, 2, 3, 4),
        at: fc.nat(60),
        inserted: piece,
        end: piece,
        last: fc.constantFrom('', '', 'B', 'f', '/'),
      })
      .map(({ cut, at, inserted, end, last }) => (key: string): string => {
        const kept = key.slice(0, key.length - cut);
        const other = last === '' ? kept : kept.replace(/[^=](?==*$)/, last);
        return `${other.slice(0, at)}${inserted}${other.slice(at)}${end}`;
      });

    it('match those that ssh-keygen finds', () => {
      const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-known-keys-'));
      try {
        const keys = TYPES.map((type) => {
          const path = join(directory, type);
          generateKey(path, type);
          return readFileSync(`${path}.pub`, 'utf8').split(' ').slice(0, 2);
        });
        const samples = fc.sample(fc.tuple(fc.constantFrom(...keys), damage, fc.constantFrom('', ' comment', '\t# note')), {
          numRuns: 1500,
          seed: 7,
        });
        const lines = samples.map(([[type = '', key = ''], change, comment]) => `host ${type} ${change(key)}${comment}`);
        const file = join(directory, 'known_hosts');
        writeFileSync(file, `${lines.join('\n')}\n`);
        const { stdout } = spawnSync('ssh-keygen', ['-l', '-F', 'host', '-f', file], { encoding: 'utf8' });
        const theirs = [...stdout.matchAll(/^# Host host found: line (\d+)/gm)].map(([, line]) => Number(line));
        const ours = parseKnownHosts(readFileSync(file, 'utf8'), file).map(({ line }) => line);
        const different = [...ours.filter((line) => !theirs.includes(line)), ...theirs.filter((line) => !ours.includes(line))];
        expect(different.map((line) => lines[line - 1])).toEqual([]);
        expect(theirs.length).toBeGreaterThan(50);
        expect(lines.length - theirs.length).toBeGreaterThan(500);
      } finally {
        rmSync(directory, { recursive: true, force: true });
      }
    });
  },
);

function hashed(name: string, salt: Uint8Array): string {
  const [key] = parseKnownHosts('x ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl\n', '');
  return key === undefined ? '' : (renderKnownHostsLine(name, key, salt).split(' ')[0] ?? '');
}

/** The server accepts no login: a client that reaches authentication has trusted the key. */
async function ourVerdict(target: SshTarget): Promise<Verdict> {
  const transport = sshTransport(target, { hostKeys: knownHostsStore() });
  const error: unknown = await transport.run(['true']).catch((reason: unknown) => reason);
  await transport.close();
  if (isAppError(error, 'HOST_AUTH_FAILED')) return 'known';
  if (isAppError(error, 'HOST_KEY_UNKNOWN')) return 'unknown';
  if (isAppError(error, 'HOST_KEY_REVOKED')) return 'revoked';
  if (isAppError(error, 'HOST_KEY_MISMATCH')) return 'changed';
  throw error;
}

async function verdictOfSsh(target: SshTarget): Promise<Verdict> {
  const options = [
    'BatchMode=yes',
    'PreferredAuthentications=none',
    'StrictHostKeyChecking=yes',
    'CheckHostIP=no',
    'UpdateHostKeys=no',
    `UserKnownHostsFile=${target.userKnownHostsFiles.join(' ')}`,
    `GlobalKnownHostsFile=${target.globalKnownHostsFiles.join(' ')}`,
    ...(target.hostKeyAlias === null ? [] : [`HostKeyAlias=${target.hostKeyAlias}`]),
  ];
  const flags = ['-4', '-F', 'none', '-p', String(target.port), '-l', target.user, ...options.flatMap((option) => ['-o', option])];
  const reported = await new Promise<string>((resolve, reject) => {
    const child = spawn('ssh', [...flags, target.hostName, 'true'], { stdio: ['ignore', 'ignore', 'pipe'] });
    let text = '';
    child.stderr.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    child.once('error', reject);
    child.once('close', () => resolve(text));
  });
  if (/Permission denied/.test(reported)) return 'known';
  if (/REVOKED HOST KEY DETECTED/.test(reported)) return 'revoked';
  if (/REMOTE HOST IDENTIFICATION HAS CHANGED/.test(reported)) return 'changed';
  if (/host key is known for/.test(reported)) return 'unknown';
  throw new Error(`unexpected output of ssh: ${reported}`);
}
