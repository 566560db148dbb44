import { execFileSync, spawn } from 'node:child_process';
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sshKeygenSignatures } from '../../src/fleet/adapters/plan-signatures.ts';
import { savePlan } from '../../src/fleet/plan/saved-plan.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';
import { generateKey } from '../support/sshd.ts';
import { untilTrue } from '../support/until-true.ts';

const CONTEXT = {
  fleet: { file: 'fleet.yaml', directory: '/srv', name: null },
  cluster: { kubeconfig: null, context: null, configuration: null, endpoint: null, caFile: null, caCertHashes: [], token: null },
  server: 'https://10.0.0.1:6443',
  takeOver: false,
  ignorePreflightErrors: [],
};

describe('the signature of a saved plan', { timeout: 60_000 }, () => {
  let directory: string;
  const path = (name: string): string => join(directory, name);
  const key = (name: string): string => path(`${name}.key`);
  const signatures = sshKeygenSignatures();
  const saved = (validForMs: number): string => `${JSON.stringify(savePlan(CONTEXT, [], { createdAt: new Date(), validForMs }))}\n`;
  const sign = async (name: string, by: string): Promise<void> =>
    writeFileSync(path(`${name}.sig`), await signatures.sign(readFileSync(path(name), 'utf8'), key(by)));
  const allow = (name: string, ...signers: readonly string[]): string => {
    const lines = signers.map((signer) => `${signer}@example.com ${readFileSync(`${key(signer)}.pub`, 'utf8')}`);
    writeFileSync(path(name), lines.join(''));
    return path(name);
  };
  /** Without a connection to any host or cluster. */
  const run = (...args: readonly string[]): Promise<CliResult> =>
    runCommand(args, {
      env: { HOME: directory, XDG_STATE_HOME: path('state') },
      services: () => ({
        connectHost: async () => {
          throw new Error('a host was contacted');
        },
      }),
    });
  const apply = (plan: string, ...args: readonly string[]): Promise<CliResult> => run('apply', path(plan), ...args);

  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'ka-signature-'));
    for (const name of ['alice', 'bob']) generateKey(key(name), 'ed25519');
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  it('is accepted from each allowed signer', async () => {
    writeFileSync(path('plan.json'), saved(60_000));
    const list = allow('signers', 'alice', 'bob');
    for (const signer of ['alice', 'bob']) {
      await sign('plan.json', signer);
      expect(await apply('plan.json', '--require-signature', list)).toMatchObject({ code: 0, stdout: 'Nothing to do.\n' });
      const shown = await run('plan', 'show', path('plan.json'), '--require-signature', list);
      expect(shown.stdout).toMatch(new RegExp(`^signed with the key SHA256:[\\w+/]{43} by ${signer}@example\\.com$`, 'm'));
    }
  });

  it.each([
    ['*@example.com', 'any signer that matches *@example.com'],
    ['!bob@example.com,*', 'any signer that matches !bob@example.com'],
    ['alice?example.com', 'any signer that matches alice?example.com'],
    ['alice@example.com', 'alice@example.com'],
  ])('names the key, and for the list %s: %s', async (pattern, principal) => {
    writeFileSync(path('pattern.json'), saved(60_000));
    await sign('pattern.json', 'alice');
    writeFileSync(path('patterns'), `${pattern} ${readFileSync(`${key('alice')}.pub`, 'utf8')}`);
    const files = { plan: 'pattern.json', signature: path('pattern.json.sig'), allowedSigners: path('patterns') };
    const signer = await signatures.verify(readFileSync(path('pattern.json'), 'utf8'), files);
    expect(signer.fingerprint).toMatch(/^SHA256:[\w+/]{43}$/);
    expect(signer.principal).toBe(principal);
  });

  it('is refused if one byte of the plan changed', async () => {
    writeFileSync(path('changed.json'), saved(60_000));
    await sign('changed.json', 'alice');
    const list = allow('signers', 'alice');
    // A space changes no value of the plan: without a signature the plan is still accepted.
    appendFileSync(path('changed.json'), ' ');
    expect((await apply('changed.json')).code).toBe(0);
    const { code, stderr } = await apply('changed.json', '--require-signature', list);
    expect(code).toBe(2);
    expect(stderr).toMatch(
      /changed\.json is refused: the signature .*changed\.json\.sig is not valid for this plan: .*\[PLAN_SIGNATURE_INVALID\]/,
    );
  });

  it('is refused from an unknown signer, and in another namespace', async () => {
    writeFileSync(path('foreign.json'), saved(60_000));
    await sign('foreign.json', 'bob');
    const foreign = await apply('foreign.json', '--require-signature', allow('signers', 'alice'));
    expect(foreign.code).toBe(2);
    expect(foreign.stderr).toMatch(/the signature .* was not made by a signer listed in .*signers.*\[PLAN_SIGNATURE_INVALID\]/);
    const bob = readFileSync(`${key('bob')}.pub`, 'utf8');
    writeFileSync(path('elsewhere'), `bob@example.com namespaces="git" ${bob}`);
    const elsewhere = await apply('foreign.json', '--require-signature', path('elsewhere'));
    expect(elsewhere.code).toBe(2);
    expect(elsewhere.stderr).toContain('[PLAN_SIGNATURE_INVALID]');
  });

  it('is refused if the key is revoked, by a list of keys or a KRL', async () => {
    writeFileSync(path('revoked.json'), saved(60_000));
    await sign('revoked.json', 'alice');
    const list = allow('signers', 'alice', 'bob');
    execFileSync('ssh-keygen', ['-q', '-k', '-f', path('alice.krl'), `${key('alice')}.pub`]);
    execFileSync('ssh-keygen', ['-q', '-k', '-f', path('bob.krl'), `${key('bob')}.pub`]);
    writeFileSync(path('none'), '');
    writeFileSync(path('damaged'), 'no key\n');
    const withRevoked = (file: string, ...command: readonly string[]) =>
      run(...command, path('revoked.json'), '--require-signature', list, '--revoked-signers', file);
    for (const accepted of [`${key('bob')}.pub`, path('bob.krl'), path('none')])
      expect(await withRevoked(accepted, 'apply')).toMatchObject({ code: 0, stderr: '' });
    for (const refused of [`${key('alice')}.pub`, path('alice.krl'), path('damaged')])
      for (const command of [['apply'], ['plan', 'show']]) {
        const { code, stdout, stderr } = await withRevoked(refused, ...command);
        expect([code, stdout]).toEqual([2, '']);
        expect(stderr).toMatch(
          /revokes the key SHA256:\S{43} of .*revoked\.json\.sig, or ssh-keygen cannot read .*\[PLAN_SIGNATURE_INVALID\]/,
        );
      }
    expect(await withRevoked(path('missing'), 'apply')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('missing does not exist'),
    });
    const alone = await apply('revoked.json', '--revoked-signers', path('alice.krl'));
    expect(alone).toMatchObject({ code: 2, stderr: expect.stringContaining('--revoked-signers requires --require-signature') });
  });

  it('is required: a missing signature or list is an error', async () => {
    writeFileSync(path('unsigned.json'), saved(60_000));
    const list = allow('signers', 'alice');
    const unsigned = await apply('unsigned.json', '--require-signature', list);
    expect(unsigned.code).toBe(2);
    expect(unsigned.stderr).toMatch(/unsigned\.json\.sig does not exist.*\[PLAN_NOT_SIGNED\]/s);
    const noList = await apply('unsigned.json', '--require-signature', path('missing'));
    expect(noList).toMatchObject({ code: 2, stderr: expect.stringContaining('missing does not exist') });
  });

  it('does not make an expired plan valid', async () => {
    writeFileSync(path('old.json'), saved(0));
    await sign('old.json', 'alice');
    const list = allow('signers', 'alice');
    expect(await apply('old.json', '--require-signature', list)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('[PLAN_EXPIRED]'),
    });
    const shown = await run('plan', 'show', path('old.json'), '--require-signature', list);
    expect(shown).toMatchObject({ code: 0, stdout: expect.stringMatching(/^created .*Z, expired .*Z: apply refuses the plan$/m) });
  });

  it('is made with a key that only ssh-agent holds, named by its public key', async () => {
    const agent = spawn('ssh-agent', ['-D', '-a', path('agent')], { stdio: 'ignore' });
    const ended = new Promise((resolve) => agent.once('exit', resolve));
    try {
      await untilTrue(() => existsSync(path('agent')));
      process.env.SSH_AUTH_SOCK = path('agent');
      execFileSync('ssh-add', ['-q', key('alice')], { stdio: 'ignore' });
      writeFileSync(path('held.pub'), readFileSync(`${key('alice')}.pub`));
      writeFileSync(path('held.json'), saved(60_000));
      writeFileSync(path('held.json.sig'), await signatures.sign(readFileSync(path('held.json'), 'utf8'), path('held.pub')));
      expect((await apply('held.json', '--require-signature', allow('signers', 'alice'))).code).toBe(0);
    } finally {
      delete process.env.SSH_AUTH_SOCK;
      agent.kill();
      await ended;
    }
  });

  it('is not made with a key that cannot be read', async () => {
    await expect(signatures.sign('{}', path('no.key'))).rejects.toMatchObject({ code: 'PLAN_NOT_SIGNED', exitCode: 2 });
    await expect(sshKeygenSignatures({ program: path('no-program') }).sign('{}', key('alice'))).rejects.toThrow('is not installed');
    expect(existsSync(path('no.key'))).toBe(false);
  });
});
