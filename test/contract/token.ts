import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Cluster } from '../../src/kube/cluster.ts';
import { caPinsOf } from '../../src/x509/ca-pin.ts';
import { runCommand } from '../support/run-cli.ts';

/** A cluster for managing tokens. */
export interface TokenWorld {
  /** As an admin. */
  readonly cluster: Cluster;
  readonly kubeconfig: string;
  readonly url: string;
  readonly caPem: string;
  /** Runs kubeadm with this kubeconfig and returns its standard output. Null: kubeadm is not available. */
  readonly kubeadm: ((args: readonly string[], kubeconfig: string) => string) | null;
  close(): Promise<void>;
}

const SECRETS = { apiVersion: 'v1', kind: 'Secret', namespace: 'kube-system' } as const;
const GROUP = 'system:bootstrappers:kubeadm:default-node-token';
const SECRET = '0123456789abcdef';

/** The commands of `token`, against an API server. */
export function tokenContract(name: string, start: () => Promise<TokenWorld>): void {
  describe(name, () => {
    const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-token-'));
    const file = (path: string, text: string): string => {
      writeFileSync(join(directory, path), text, { mode: 0o600 });
      return join(directory, path);
    };
    let world: TokenWorld;
    let admin: string;
    beforeAll(async () => {
      world = await start();
      admin = file('admin.conf', world.kubeconfig);
    });
    afterAll(async () => {
      await world?.close();
      rmSync(directory, { recursive: true, force: true });
    });
    beforeEach(async () => {
      for (const { metadata } of (await world.cluster.list(SECRETS)).items)
        if (metadata.name.startsWith('bootstrap-token-')) await world.cluster.delete({ ...SECRETS, name: metadata.name });
    });
    const token = (...args: readonly string[]) => runCommand(['token', ...args, '--kubeconfig', admin]);
    /** Messages after the first line, which names the changed cluster. */
    const messagesIn = (stderr: string): string => {
      const [first = '', ...messages] = stderr.split('\n');
      expect(first).toBe(`cluster: context "kubernetes-admin@kubernetes", ${world.url} (${admin})`);
      return messages.join('\n');
    };
    const dataOf = async (id: string): Promise<Record<string, string>> => {
      const found = await world.cluster.get({ ...SECRETS, name: `bootstrap-token-${id}` });
      const data = (found?.data ?? {}) as Record<string, string>;
      return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64').toString()]));
    };

    it('create creates the Secret and prints only the token', async () => {
      const { code, stdout, stderr } = await token('create', `abcdef.${SECRET}`, '--ttl', '2h', '--description', 'for rack 7');
      expect([code, stdout, messagesIn(stderr)]).toEqual([0, `abcdef.${SECRET}\n`, '']);
      const { expiration = '', ...data } = await dataOf('abcdef');
      expect(data).toEqual({
        'token-id': 'abcdef',
        'token-secret': SECRET,
        description: 'for rack 7',
        'usage-bootstrap-signing': 'true',
        'usage-bootstrap-authentication': 'true',
        'auth-extra-groups': GROUP,
      });
      expect(Math.abs(Date.parse(expiration) - Date.now() - 7_200_000)).toBeLessThan(60_000);
    });

    it('create generates a different token each time', async () => {
      const made = [(await token('create')).stdout, (await token('create', '--ttl', '0')).stdout];
      for (const one of made) expect(one).toMatch(/^[a-z0-9]{6}\.[a-z0-9]{16}\n$/);
      expect(made[0]).not.toBe(made[1]);
      expect(await dataOf(made[1]?.slice(0, 6) ?? '')).not.toHaveProperty('expiration');
    });

    it('create creates all tokens of a file, also one with expires, and prints the first', async () => {
      const config = file('tokens.yaml', TOKENS);
      expect(await token('create', '--config', config)).toMatchObject({ code: 0, stdout: `aaaaaa.${SECRET}\n` });
      expect(await dataOf('aaaaaa')).toMatchObject({ expiration: '2099-01-02T01:04:05Z' });
      expect(await dataOf('bbbbbb')).toEqual({
        'token-id': 'bbbbbb',
        'token-secret': SECRET,
        'usage-bootstrap-authentication': 'true',
        'auth-extra-groups': GROUP,
      });
    });

    it('create changes nothing when one of the ids exists', async () => {
      await token('create', `bbbbbb.${SECRET}`);
      const { code, stderr } = await token('create', '--config', file('tokens.yaml', TOKENS));
      expect([code, messagesIn(stderr)]).toEqual([
        1,
        'a token with id "bbbbbb" already exists. Delete the existing token with kubeletadm token delete bbbbbb, or omit the token to generate a new one. [TOKEN_EXISTS]\n',
      ]);
      expect(await dataOf('aaaaaa')).toEqual({});
    });

    it('create --print-join-command prints the join command of a node', async () => {
      const pin = caPinsOf(world.caPem)?.[0];
      const { stdout } = await token('create', `abcdef.${SECRET}`, '--print-join-command');
      expect(stdout).toBe(`kubeletadm join ${world.url.slice(8)} --token abcdef.${SECRET} --discovery-token-ca-cert-hash ${pin} \n`);
    });

    it('create --print-join-command --certificate-key prints the join command of a control plane', async () => {
      const key = 'a1'.repeat(32);
      const { stdout } = await token('create', `abcdef.${SECRET}`, '--print-join-command', '--certificate-key', key);
      expect(stdout).toMatch(
        new RegExp(` --token abcdef\\.${SECRET} --discovery-token-ca-cert-hash \\S+ --control-plane --certificate-key ${key}`),
      );
    });

    it('create --dry-run and delete --dry-run change nothing and show no token', async () => {
      const { code, stdout } = await token('create', `abcdef.${SECRET}`, '--dry-run', '-o', 'yaml');
      expect([code, stdout.includes('name: bootstrap-token-abcdef'), stdout.includes(SECRET)]).toEqual([0, true, false]);
      expect(stdout).not.toContain(Buffer.from(SECRET).toString('base64'));
      expect(await dataOf('abcdef')).toEqual({});
      await token('create', `abcdef.${SECRET}`);
      expect((await token('delete', 'abcdef', '--dry-run')).stdout).toBe('bootstrap token "abcdef" deleted (dry run)\n');
      expect(await dataOf('abcdef')).toHaveProperty('token-id');
    });

    it('delete accepts ids and tokens, and continues after a missing one', async () => {
      for (const id of ['aaaaaa', 'bbbbbb', 'cccccc']) await token('create', `${id}.${SECRET}`);
      const { code, stdout, stderr } = await token('delete', 'aaaaaa', 'nobody', `bbbbbb.${SECRET}`);
      expect([code, stdout]).toEqual([1, 'bootstrap token "aaaaaa" deleted\nbootstrap token "bbbbbb" deleted\n']);
      expect(messagesIn(stderr)).toBe(
        'failed to delete bootstrap token "nobody": Secret kube-system/bootstrap-token-nobody does not exist. List the existing tokens: kubeletadm token list. The cluster deletes expired tokens automatically. [TOKEN_NOT_FOUND]\n',
      );
      expect((await token('list')).stdout.split('\n').map((line) => line.slice(0, 6))).toEqual(['TOKEN ', 'cccccc', '']);
    });

    it('delete deletes nothing when an argument is invalid, and does not print it', async () => {
      await token('create', `aaaaaa.${SECRET}`);
      const { code, stderr } = await token('delete', 'aaaaaa', 'aaaaaa.0123456789ABCDEF');
      expect([code, stderr]).toEqual([
        2,
        'argument 2 of token delete is neither a token id nor a token. Write a token id such as abcdef, or a token of the form [a-z0-9]{6}.[a-z0-9]{16}. [USAGE]\n',
      ]);
      expect(await dataOf('aaaaaa')).toHaveProperty('token-id');
    });

    it.each<[readonly string[], string]>([
      [
        [`ABCDEF.${SECRET}`],
        'argument token: the value is not a bootstrap token of the form [a-z0-9]{6}.[a-z0-9]{16} [CONFIG_INVALID_TOKEN]',
      ],
      [['--ttl', '-1h'], '--ttl: "-1h0m0s" is negative. For a token that never expires, use 0s. [CONFIG_OUT_OF_RANGE]'],
      [['--ttl', 'long'], '--ttl: "long" is not a duration such as 24h or 90s [CONFIG_INVALID_FLAG]'],
      [['--usages', 'signing,foo'], '--usages: "foo" is not a valid token usage. Use signing or authentication. [CONFIG_INVALID_VALUE]'],
      [
        ['--groups', 'system:masters'],
        '--groups: "system:masters" is not a valid group of bootstrap tokens. A group is system:bootstrappers: followed by lower-case letters, digits, colons and dashes. [CONFIG_INVALID_VALUE]',
      ],
      [
        ['--usages', 'signing'],
        '--usages: usages must contain authentication, because kubeadm adds a default group to every token, and groups need this usage. Add authentication to usages. [CONFIG_CONFLICT]',
      ],
      [['--certificate-key', 'a'.repeat(64)], '--certificate-key requires --print-join-command [USAGE]'],
      [
        ['--certificate-key', 'a'.repeat(63), '--print-join-command'],
        'the value of --certificate-key does not have 64 hexadecimal digits. Pass the key that kubeletadm init phase upload-certs --upload-certs prints. [USAGE]',
      ],
    ])('create %j is rejected', async (args, message) => {
      expect(await token('create', ...args)).toEqual({ code: 2, stdout: '', stderr: `${message}\n` });
      expect((await token('list')).stdout).toBe('');
    });

    it('create rejects flags in addition to a file', async () => {
      const config = file('tokens.yaml', TOKENS);
      const { code, stderr } = await token('create', `abcdef.${SECRET}`, '--config', config, '--ttl', '1h', '--usages', 'signing');
      expect([code, stderr]).toEqual([
        2,
        '--config cannot be combined with a token, --ttl, --usages. Set the value in bootstrapTokens of the file. [USAGE]\n',
      ]);
    });

    it('create reports the position of an error in a file', async () => {
      const config = file('tokens.yaml', TOKENS.replace('2099-01-02T03:04:05+02:00', 'tomorrow'));
      const { code, stderr } = await token('create', '--config', config);
      expect(code).toBe(2);
      expect(stderr).toContain('tokens.yaml:5:12 bootstrapTokens[0].expires: "tomorrow" is not a time in RFC 3339 form');
    });

    it('list warns of a Secret without a token, and lists the others', async () => {
      await token('create', `aaaaaa.${SECRET}`);
      await world.cluster.create({
        ...SECRETS,
        metadata: { name: 'bootstrap-token-zzzzzz', namespace: 'kube-system' },
        type: 'bootstrap.kubernetes.io/token',
        stringData: { 'token-id': 'zzzzzz', 'token-secret': 'tooshort' },
      });
      const { code, stdout, stderr } = await token('list');
      expect([code, stdout.split('\n').length]).toEqual([0, 3]);
      expect(stderr).toBe('warning: Secret bootstrap-token-zzzzzz contains no valid bootstrap token [TOKEN_SECRET_INVALID]\n');
    });

    it('prints the token only to standard output, at any verbosity', async () => {
      for (const args of [['create', `abcdef.${SECRET}`], ['list'], ['delete', `abcdef.${SECRET}`], ['delete', `abcdef.${SECRET}`]])
        expect((await token(...args, '-v', '9')).stderr).not.toContain(SECRET);
    });

    it('prints byte-for-byte the same as kubeadm, and creates the same Secrets', async ({ skip }) => {
      const { kubeadm } = world;
      if (kubeadm === null) return skip();
      const create = [
        'create',
        `abcdef.${SECRET}`,
        '--ttl',
        '26h',
        '--description',
        'ä <b> & 漢字',
        '--groups',
        `system:bootstrappers:z,${GROUP}`,
      ];
      expect(kubeadm(['token', ...create], admin)).toBe(`abcdef.${SECRET}\n`);
      const theirs = await dataOf('abcdef');
      await token('delete', 'abcdef');
      await token(...create);
      const { expiration: ours, ...data } = await dataOf('abcdef');
      expect(data).toEqual(Object.fromEntries(Object.entries(theirs).filter(([key]) => key !== 'expiration')));
      expect(Math.abs(Date.parse(ours ?? '') - Date.parse(theirs.expiration ?? ''))).toBeLessThan(30_000);
      await token('create', `bbbbbb.${SECRET}`, '--ttl', '0', '--usages', 'signing');
      await token('create', `cccccc.${SECRET}`, '--ttl', '1000h');
      for (const format of ['text', 'json', 'yaml'])
        expect((await token('list', '-o', format)).stdout).toBe(kubeadm(['token', 'list', '-o', format], admin));
      const line = kubeadm(['token', 'create', `dddddd.${SECRET}`, '--print-join-command'], admin);
      expect(kubeadm(['token', 'delete', 'dddddd'], admin)).toBe((await token('delete', 'cccccc')).stdout.replace('cccccc', 'dddddd'));
      expect((await token('create', `dddddd.${SECRET}`, '--print-join-command')).stdout).toBe(line.replace(/^kubeadm/, 'kubeletadm'));
      const controlPlane = ['token', 'create', `eeeeee.${SECRET}`, '--print-join-command', '--certificate-key', 'a1'.repeat(32)];
      const theirLine = kubeadm(controlPlane, admin);
      await token('delete', 'eeeeee');
      expect((await token(...controlPlane.slice(1))).stdout).toBe(theirLine.replace(/^kubeadm/, 'kubeletadm'));
    });
  });
}

const TOKENS = `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
bootstrapTokens:
- token: aaaaaa.${SECRET}
  expires: 2099-01-02T03:04:05+02:00
- token: bbbbbb.${SECRET}
  ttl: 0s
  usages: [authentication]
`;
