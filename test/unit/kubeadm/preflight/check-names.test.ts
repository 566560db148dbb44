import { describe, expect, it } from 'vitest';
import { AppError } from '../../../../src/base/errors.ts';
import { FIXED_NAMES, unknownCheck } from '../../../../src/kubeadm/config/check-names.ts';
import { loadConfig } from '../../../../src/kubeadm/config/load.ts';
import { runCommand } from '../../../support/run-cli.ts';
import { repositoryTexts } from '../../../support/source-files.ts';

describe('names of preflight checks', () => {
  it.each([
    'all',
    'ALL',
    'IsDockerSystemdCheck',
    'Swap',
    'swap',
    'NUMCPU',
    'Port-6443',
    'FileAvailable--etc-kubernetes-kubelet.conf',
    'fileexisting-conntrack',
  ])('accepts %s', (name) => {
    expect(unknownCheck(name)).toBeNull();
  });

  it('each belong to a check', () => {
    const code = [...repositoryTexts()].flatMap(([path, text]) =>
      path.startsWith('src/') && !path.endsWith('/check-names.ts') ? [text] : [],
    );
    expect(FIXED_NAMES.filter((name) => !code.some((text) => text.includes(`'${name}'`)))).toEqual([]);
  });

  it.each([
    ['Swapp', 'Did you mean Swap?'],
    ['NumCPUs', 'Did you mean NumCPU?'],
    ['FileExistng-conntrack', 'Did you mean FileExisting-conntrack?'],
    ['Port6443', 'Did you mean Port-6443?'],
    ['FileAvailable', 'Did you mean FileAvailable-…?'],
    ['Foo', expect.stringMatching(/^Valid names: all, AdvertiseAddress, .*, Swap, .*Port-…, Service-…$/)],
  ])('rejects %s', (name, hint) => {
    expect(unknownCheck(name)).toEqual({ message: `no preflight check has the name "${name}"`, hint });
  });
});

describe('an unknown preflight check', () => {
  it.each([
    ['InitConfiguration', 'nodeRegistration: {ignorePreflightErrors: [Swapp]}'],
    ['JoinConfiguration', 'nodeRegistration: {ignorePreflightErrors: [Swapp]}'],
    ['ResetConfiguration', 'ignorePreflightErrors: [Swapp]'],
    ['UpgradeConfiguration', 'node: {ignorePreflightErrors: [Swapp]}'],
  ] as const)('is ignored with a warning in a %s, with its position', (kind, text) => {
    const { problems } = loadConfig(`apiVersion: kubeadm.k8s.io/v1beta4\nkind: ${kind}\n${text}\n`, 'f.yaml', { kinds: [kind] });
    expect(problems.find(({ code }) => code === 'CONFIG_UNKNOWN_CHECK')).toMatchObject({
      position: { line: 3 },
      path: expect.stringContaining('ignorePreflightErrors[0]'),
      hint: 'Did you mean Swap?',
      severity: 'warning',
    });
  });

  it.each([
    ['init', ['init', '--dry-run']],
    [
      'join',
      ['join', '192.0.2.1:6443', '--token', 'abcdef.0123456789abcdef', '--discovery-token-unsafe-skip-ca-verification', '--dry-run'],
    ],
    ['reset', ['reset', '--dry-run']],
    ['upgrade node', ['upgrade', 'node', '--dry-run']],
  ])('is ignored with a warning by %s, as in kubeadm', async (_, args) => {
    const connectHost = () => Promise.reject(new AppError({ code: 'CONNECTED', message: 'a host is connected' }));
    const { stderr } = await runCommand([...args, '--ignore-preflight-errors=Swapp'], { services: () => ({ connectHost }) });
    expect(stderr).toContain(
      'warning: --ignore-preflight-errors: no preflight check has the name "Swapp": ignored. Did you mean Swap? [CONFIG_UNKNOWN_CHECK]\n',
    );
  });

  it('is rejected by apply of a fleet file', async () => {
    expect(await runCommand(['apply', '--ignore-preflight-errors=Swapp'])).toMatchObject({
      code: 2,
      stderr: '--ignore-preflight-errors: no preflight check has the name "Swapp". Did you mean Swap? [CONFIG_UNKNOWN_CHECK]\n',
    });
  });
});
