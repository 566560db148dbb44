import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hostname, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { execa } from 'execa';
import { afterAll, describe, expect, it } from 'vitest';
import { startApiServer } from '../../lab/api-server/server.ts';
import { kubeadmVersion } from '../support/real-kubeadm.ts';
import { requirement } from '../support/requirement.ts';
import { type CliOptions, runCommand } from '../support/run-cli.ts';
import { REPOSITORY } from '../support/source-files.ts';
import { upgradeCluster } from '../support/upgrade-cluster.ts';

const kubeadm = join(process.env.KUBEBUILDER_ASSETS ?? '', 'kubeadm');
const absent = existsSync(kubeadm) && kubeadmVersion(kubeadm) === 'v1.36.2' ? null : 'KUBEBUILDER_ASSETS has no kubeadm v1.36.2';

const INSTALLERS = join(REPOSITORY, 'test/fixtures/kubeadm-1.36.2/installer-lines.txt');
const SPELLINGS = join(REPOSITORY, 'test/fixtures/kubeadm-1.36.2/spellings.txt');

const asKubeadm = (argv: readonly string[], options: CliOptions = {}) =>
  runCommand(argv, { ...options, env: { KUBELETADM_PROGRAM_NAME: 'kubeadm', ...options.env } });

const images = (...more: readonly string[]) => ['config', 'images', 'list', '--kubernetes-version', 'v1.36.2', ...more];

describe('as kubeadm', () => {
  it('prints the version in the forms that scripts read', async () => {
    expect((await asKubeadm(['version', '-o=short'])).stdout).toBe('v1.36.2\n');
    expect((await asKubeadm(['version'])).stdout).toMatch(
      /^kubeadm version: &version\.Info\{Major:"1", Minor:"36", .*GitVersion:"v1\.36\.2", GitCommit:".+", GitTreeState:".+", BuildDate:".+", GoVersion:".+", Compiler:".+", Platform:".+"\}\n$/,
    );
    const { clientVersion } = JSON.parse((await asKubeadm(['version', '-o', 'json'])).stdout) as { clientVersion: object };
    const members = ['major', 'minor', 'gitVersion', 'gitCommit', 'gitTreeState', 'buildDate', 'goVersion', 'compiler', 'platform'];
    expect(Object.keys(clientVersion)).toEqual(members);
    expect(Object.values(clientVersion).every((value) => typeof value === 'string' && value !== '')).toBe(true);
  });

  it.each([
    [['tokn'], 'unknown command tokn. Did you mean token? [USAGE]\n'],
    [['frob'], 'unknown command frob. See kubeadm --help. [USAGE]\n'],
    [['init', 'phase', 'certs', 'frob'], 'unknown command init phase certs frob. See kubeadm init phase certs --help. [USAGE]\n'],
    [['init', '--dryrun'], 'unknown option --dryrun for init. Did you mean --dry-run? [USAGE]\n'],
    [['init', '--frob'], 'unknown option --frob for init. See kubeadm init --help. [USAGE]\n'],
    [['version', '--vmodule', 'a=x'], 'must be a comma-separated list of filename=N'],
    [['version', '-o', 'wide'], 'invalid value "wide", must be one of text, short, json, yaml. See kubeadm version --help. [USAGE]\n'],
  ])('%j fails with exit code 1', async (argv, message) => {
    const { code, stdout, stderr } = await asKubeadm(argv);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain(message);
  });

  it.each([
    ['init', '--dry-run'],
    ['join', '192.0.2.1:6443', '--token', 'abcdef.0123456789abcdef', '--discovery-token-unsafe-skip-ca-verification', '--dry-run'],
    ['reset', '--force', '--dry-run'],
    ['upgrade', 'node', '--dry-run'],
  ])('refuses an empty name among the phases to skip: %s', async (...argv) => {
    for (const phases of ['preflight,', ',preflight', 'preflight,,certs']) {
      const { code, stderr } = await asKubeadm([...argv, `--skip-phases=${phases}`]);
      expect([code, stderr]).toEqual([1, expect.stringContaining('--skip-phases')]);
    }
  });

  it.each([
    [['init', 'phase', 'certs']],
    [['init', 'phase', 'addon', '--dry-run']],
    [['init', 'phase', 'etcd']],
    [['join', 'phase', 'control-plane-prepare']],
  ])('runs no group of phases by its name alone: %j', async (argv) => {
    const connectHost = () => Promise.reject(new Error('a host was connected'));
    const { code, stdout, stderr } = await asKubeadm(argv, { services: () => ({ connectHost }) });
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(/^Usage: kubeadm /);
  });

  // What kubeadm does with each line: `reads-file` fails because the file /none does not exist, `refused` for the line itself.
  // Only root may change the root directory: kubeadm, too, fails for another user.
  it.each(
    readFileSync(SPELLINGS, 'utf8')
      .trim()
      .split('\n')
      .map((row) => row.split(/ (.*)/)),
  )('%s: kubeadm %s', async (verdict, line = '') => {
    const connectHost = () => Promise.reject(new Error('a host was connected'));
    const { code, stderr } = await asKubeadm(line.split(' '), { services: () => ({ connectHost }) });
    const changesRoot = line.includes('--rootfs') && process.getuid?.() !== 0;
    expect(code).toBe(verdict === 'done' && !changesRoot ? 0 : 1);
    if (verdict === 'reads-file') expect(stderr).toContain('cannot read /none: no such file or directory');
  });

  describe('a configuration with unknown fields', () => {
    const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-unknown-'));
    afterAll(() => rmSync(directory, { recursive: true, force: true }));
    const cluster = (more: string): string =>
      `apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.36.2\n${more}\n`;
    const component = (group: string, kind: string, more: string): string =>
      `---\napiVersion: ${group}.config.k8s.io/${kind === 'KubeletConfiguration' ? 'v1beta1' : 'v1alpha1'}\nkind: ${kind}\n${more}\n`;
    const files = {
      metadata:
        cluster('metadata: {name: config}') +
        component('kubelet', 'KubeletConfiguration', 'metadata: {name: config}') +
        component('kubeproxy', 'KubeProxyConfiguration', 'metadata: {name: config}'),
      unknown:
        cluster('frob: 1\nnetworking: {podSubnet2: x}') +
        component('kubelet', 'KubeletConfiguration', 'frob: 1') +
        component('kubeproxy', 'KubeProxyConfiguration', 'frob: 1'),
      duplicate: cluster('imageRepository: a.example\nimageRepository: b.example'),
      type: cluster('clusterName: {a: 1}'),
    } as const;
    /** Exit codes of kubeadm 1.36.2, for `config images list` and `config validate`. */
    const verdicts = { metadata: [0, 1], unknown: [0, 1], duplicate: [0, 1], type: [1, 1] } as const;
    const lines = (name: keyof typeof files): readonly (readonly string[])[] => {
      const path = join(directory, `${name}.yaml`);
      writeFileSync(path, files[name]);
      return [
        ['config', 'images', 'list', '--config', path],
        ['config', 'validate', '--config', path],
      ];
    };

    it.each(['metadata', 'unknown', 'duplicate', 'type'] as const)('has the verdicts of kubeadm: %s', async (name) => {
      const [list, validate] = await Promise.all(lines(name).map((line) => asKubeadm(line)));
      expect([list?.code, validate?.code]).toEqual(verdicts[name]);
      if (name === 'metadata') expect(list?.stderr.match(/: metadata: unknown field, ignored \[CONFIG_UNKNOWN_FIELD\]$/gm)).toHaveLength(3);
      if (name === 'unknown')
        expect(list?.stderr).toMatch(/^warning: .*:4:1: frob: unknown field, ignored .*\n.*:5:14: networking\.podSubnet2: /);
      if (name === 'duplicate') expect(list?.stdout).toMatch(/^b\.example\/kube-apiserver/);
    });

    it('is accepted by a dry run of init, with warnings', async () => {
      for (const name of ['metadata', 'unknown'] as const) {
        const config = join(directory, `${name}.yaml`);
        writeFileSync(config, files[name]);
        // --rootfs of kubeletadm: kubeadm's would change the root directory of the program.
        const more = ['--node-name', 'n1', '--rootfs', join(directory, 'root')];
        const services = () => ({ acceptsUnknownFields: true });
        const { code, stderr } = await runCommand(['init', '--dry-run', '--config', config, ...more], { services });
        expect(code, stderr).toBe(0);
        expect(stderr.match(/CONFIG_UNKNOWN_FIELD/g)).toHaveLength(name === 'metadata' ? 3 : 4);
      }
    });

    it('under the name kubeletadm is refused, except for metadata', async () => {
      for (const [name, code] of [
        ['metadata', 0],
        ['unknown', 2],
        ['duplicate', 2],
      ] as const)
        expect(await runCommand(lines(name)[0] ?? []), name).toMatchObject({ code });
    });

    it.skipIf(requirement('unknown fields compared with kubeadm', absent))('has these verdicts in kubeadm', async () => {
      for (const name of ['metadata', 'unknown', 'duplicate', 'type'] as const)
        for (const [i, line] of lines(name).entries()) {
          const { exitCode } = await execa(kubeadm, line, { reject: false, env: { PATH: process.env.PATH }, extendEnv: false });
          expect(exitCode, line.join(' ')).toBe(verdicts[name][i]);
        }
    });
  });

  describe('a command line of an installer', () => {
    const connectHost = () => Promise.reject(new Error('a host was connected'));
    const connectCluster = () => Promise.reject(new Error('a cluster was connected'));
    const run = (line: string) => asKubeadm(line.split(' '), { services: () => ({ connectHost, connectCluster }) });
    // kubeadm accepts each line, and fails because the file /none does not exist.
    const lines = readFileSync(INSTALLERS, 'utf8').trim().split('\n');

    it.each(lines.filter((line) => !line.startsWith('#')))('reads the file: %s', async (line) => {
      expect(await run(line)).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('cannot read /none: no such file') });
    });

    it.skipIf(requirement('command lines of installers compared with kubeadm', absent))('reads the file in kubeadm', async () => {
      for (const line of lines.filter((each) => !each.startsWith('#'))) {
        const env = { PATH: process.env.PATH };
        const { exitCode, stderr } = await execa(kubeadm, line.split(' '), { reject: false, env, extendEnv: false });
        expect([exitCode, stderr], line).toEqual([1, expect.stringContaining('open /none: no such file')]);
      }
    });

    it.each([
      'upgrade apply -y v1.36.2 --certificate-renewal=true --ignore-preflight-errors=all --allow-experimental-upgrades --etcd-upgrade=false --force',
      'upgrade node --certificate-renewal=true --ignore-preflight-errors=all --etcd-upgrade=false',
      'reset -f --cert-dir=/etc/kubernetes/ssl --cri-socket=unix:///run/containerd/containerd.sock',
      'reset --force',
      'token create --print-join-command --ttl=0',
      'join api.example:6443 --token abcdef.0123456789abcdef --discovery-token-unsafe-skip-ca-verification --ignore-preflight-errors=all --cri-socket unix:///run/containerd/containerd.sock --node-name=m02 --control-plane --apiserver-advertise-address=10.0.0.2 --apiserver-bind-port=8443',
      'init --ignore-preflight-errors=all --pod-network-cidr=10.244.0.0/16 --apiserver-advertise-address=10.0.0.1 --kubernetes-version v1.36.2',
    ])('is accepted: %s', async (line) => {
      // Accepted: the command went on to its first host, or to an API server that is not configured here.
      const reached = /a host was connected|\[NO_API_SERVER\]/;
      expect(await run(line)).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(reached) });
    });
  });

  it('prints help without arguments', async () => {
    const { code, stdout } = await asKubeadm([]);
    expect(code).toBe(0);
    expect(stdout).toContain('Usage: kubeadm [options] [command]');
    expect(stdout.match(/--rootfs/g)).toHaveLength(1);
  });

  it('names kubeadm in examples of help', async () => {
    const { stdout } = await asKubeadm(['token', 'create', '--help']);
    expect(stdout).toContain('  kubeadm token create --print-join-command\n');
    expect(stdout).not.toContain('kubeletadm token');
  });

  it('refuses a missing field of a template on request', async () => {
    const template = ['-o', 'jsonpath={.none}'];
    expect(await asKubeadm(images(...template))).toMatchObject({ code: 0, stdout: '' });
    expect(await asKubeadm(images(...template, '--allow-missing-template-keys=true'))).toMatchObject({ code: 0, stdout: '' });
    const refused = await asKubeadm(images(...template, '--allow-missing-template-keys=false'));
    expect(refused).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('none is not found') });
  });

  it('accepts the flags of groups of commands', async () => {
    expect(await asKubeadm(['token', '--dry-run', 'generate'])).toMatchObject({ code: 0, stderr: '' });
    expect(await asKubeadm(['--vmodule=join=3', '-v=0', ...images('--kubeconfig=/none', '--show-managed-fields=true')])).toMatchObject({
      code: 0,
      stderr: '',
    });
  });

  it('pulls no image without a container runtime', async () => {
    const { code, stderr } = await asKubeadm(['config', 'images', 'pull', '--kubernetes-version=v1.36.2', '--cri-socket=/does/not/exist']);
    expect(code).toBe(1);
    expect(stderr).toContain('no container runtime listens on unix:///does/not/exist');
  });

  it.skipIf(requirement('--rootfs as kubeadm', process.getuid?.() === 0 ? null : 'chroot needs root'))(
    'resolves paths of the command line and their links below --rootfs',
    async () => {
      const root = mkdtempSync(join(tmpdir(), 'kubeletadm-rootfs-'));
      try {
        installPrograms(root, ['/bin/sh']);
        mkdirSync(join(root, 'etc/real'), { recursive: true });
        symlinkSync('/etc/real', join(root, 'etc/link'));
        writeFileSync(
          join(root, 'etc/real/cluster.yaml'),
          'apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.36.1\nimageRepository: in.root\n',
        );
        for (const config of ['/etc/real/cluster.yaml', 'etc/real/cluster.yaml', '/etc/link/cluster.yaml']) {
          const { code, stdout, stderr } = await asKubeadm(['config', 'images', 'list', `--rootfs=${root}`, '--config', config]);
          expect([code, stderr]).toEqual([0, '']);
          expect(stdout).toContain('in.root/kube-apiserver:v1.36.1\n');
        }
      } finally {
        rmSync(root, { recursive: true, force: true });
      }
    },
  );

  it.skipIf(requirement('links below --rootfs', process.getuid?.() === 0 ? null : 'chroot needs root'))(
    'reads no file outside --rootfs through a link',
    async () => {
      const root = mkdtempSync(join(tmpdir(), 'kubeletadm-rootfs-'));
      const outside = mkdtempSync(join(tmpdir(), 'kubeletadm-outside-'));
      try {
        installPrograms(root, ['/bin/sh']);
        mkdirSync(join(root, 'etc/patches'), { recursive: true });
        writeFileSync(
          join(outside, 'cluster.yaml'),
          'apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.36.1\nimageRepository: outside.root\n',
        );
        // The target of the links exists on the local host, but not below the root.
        symlinkSync(outside, join(root, 'etc/link'));
        symlinkSync(join(outside, 'cluster.yaml'), join(root, 'etc/cluster.yaml'));
        symlinkSync(join(outside, 'kubeadm.yaml'), join(root, 'etc/patches/kube-apiserver.yaml'));
        symlinkSync(`..${outside}`, join(root, 'up'));
        writeFileSync(join(outside, 'kubeadm.yaml'), 'outside\n');
        for (const config of ['/etc/link/cluster.yaml', '/etc/cluster.yaml', '/up/cluster.yaml', `/../..${outside}/cluster.yaml`]) {
          const { code, stdout, stderr } = await asKubeadm(['config', 'images', 'list', `--rootfs=${root}`, '--config', config]);
          expect([code, stdout], config).toEqual([1, '']);
          expect(stderr).toContain('[INPUT_UNREADABLE]');
        }
        for (const patches of ['/etc/patches', '/etc/link'])
          expect(await asKubeadm(['upgrade', 'node', `--rootfs=${root}`, '--patches', patches]), patches).toMatchObject({
            code: 1,
            stderr: expect.stringMatching(/\[INPUT_(?:UNREADABLE|NOT_A_DIRECTORY)\]/),
          });
      } finally {
        rmSync(root, { recursive: true, force: true });
        rmSync(outside, { recursive: true, force: true });
      }
    },
  );

  it.skipIf(requirement('kubeconfigs below --rootfs', process.getuid?.() === 0 ? null : 'chroot needs root'))(
    'runs no program and reads no file outside --rootfs for a kubeconfig',
    async () => {
      const root = mkdtempSync(join(tmpdir(), 'kubeletadm-rootfs-'));
      const outside = mkdtempSync(join(tmpdir(), 'kubeletadm-outside-'));
      const asked: (string | undefined)[] = [];
      const server = createServer(({ headers }, response) => {
        asked.push(headers.authorization);
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(JSON.stringify({ kind: 'SecretList', apiVersion: 'v1', metadata: { resourceVersion: '1' }, items: [] }));
      });
      try {
        await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
        const { port } = server.address() as AddressInfo;
        installPrograms(root, ['/bin/sh']);
        mkdirSync(join(root, 'etc/kubernetes'), { recursive: true });
        const listTokens = async (user: object) => {
          const kubeconfig = {
            ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'c' },
            clusters: [{ name: 'c', cluster: { server: `http://127.0.0.1:${port}` } }],
            contexts: [{ name: 'c', context: { cluster: 'c', user: 'robot' } }],
            users: [{ name: 'robot', user }],
          };
          writeFileSync(join(root, 'etc/kubernetes/admin.conf'), JSON.stringify(kubeconfig));
          return asKubeadm([`--rootfs=${root}`, 'token', 'list', '--kubeconfig=/etc/kubernetes/admin.conf']);
        };

        const ran = join(outside, 'ran');
        for (const [field, plugin] of Object.entries({
          exec: {
            apiVersion: 'client.authentication.k8s.io/v1',
            command: '/bin/sh',
            args: ['-c', `touch ${ran}`],
            interactiveMode: 'Never',
          },
          'auth-provider': { name: 'gcp', config: { 'cmd-path': '/bin/sh', 'cmd-args': `-c 'touch ${ran}'` } },
        })) {
          const refused = await listTokens({ [field]: plugin });
          expect([refused.code, refused.stdout, asked, existsSync(ran)], field).toEqual([1, '', [], false]);
          expect(refused.stderr).toContain(`user "robot": the credential plugin (${field}) is not used`);
          expect(refused.stderr).toContain('[KUBECONFIG_PLUGIN_REFUSED]');
        }

        writeFileSync(join(outside, 'secret'), 'outside\n');
        symlinkSync(join(outside, 'secret'), join(root, 'etc/kubernetes/link'));
        for (const tokenFile of [join(outside, 'secret'), 'link', `../../..${outside}/secret`]) {
          const refused = await listTokens({ tokenFile });
          expect([refused.code, refused.stdout, asked], tokenFile).toEqual([1, '', []]);
          expect(refused.stderr).toContain('[KUBECONFIG_FILE_UNREADABLE]');
        }

        // The same paths below the root.
        mkdirSync(join(root, outside), { recursive: true });
        writeFileSync(join(root, outside, 'secret'), 'inside\n');
        for (const tokenFile of [join(outside, 'secret'), 'link', `../../..${outside}/secret`])
          expect(await listTokens({ tokenFile }), tokenFile).toMatchObject({ code: 0, stderr: '' });
        expect(new Set(asked)).toEqual(new Set(['Bearer inside']));
      } finally {
        server.closeAllConnections();
        server.close();
        rmSync(root, { recursive: true, force: true });
        rmSync(outside, { recursive: true, force: true });
      }
    },
  );

  it('refuses a root directory that is none', async () => {
    const { code, stderr } = await asKubeadm(['--rootfs', '/does/not/exist', 'config', 'images', 'list']);
    expect(code).toBe(1);
    expect(stderr).toContain('--rootfs /does/not/exist: cannot use the directory as root directory');
    expect(stderr).toContain('[ROOTFS_UNUSABLE]');
  });

  it('prints the defaults of kubeadm 1.36', async () => {
    const { code, stdout } = await asKubeadm(['config', 'print', 'init-defaults']);
    expect([code, stdout.match(/^kubernetesVersion: .*$/m)?.[0]]).toEqual([0, 'kubernetesVersion: 1.36.0']);
  });

  it
    .skipIf(requirement('output compared with kubeadm', absent))
    .each([
      [images()],
      [images('-o', 'json')],
      [images('-o=yaml')],
      [images('-o', 'JSON')],
      [images('-o', 'jsonpath={.images[0]} {.none}')],
      [images('-o', 'jsonpath-as-json={.kind}{"\\n"}x{range .images[0:2]}{@}{end}')],
      [['config', 'print', 'init-defaults']],
      [['config', 'print', 'join-defaults']],
      [['config', 'print', 'reset-defaults']],
      [['config', 'print', 'upgrade-defaults']],
      [['version', '-o', 'short']],
    ])('prints the bytes of kubeadm: %j', async (argv) => {
    const real = await execa(kubeadm, argv, { stripFinalNewline: false, env: { PATH: process.env.PATH }, extendEnv: false });
    expect(await asKubeadm(argv)).toMatchObject({ code: 0, stdout: real.stdout });
  });

  it.skipIf(requirement('check-expiration compared with kubeadm', absent))('prints the lines of certs check-expiration', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-expiration-'));
    const api = await startApiServer();
    try {
      const kubeconfig = join(directory, 'admin.conf');
      writeFileSync(kubeconfig, api.adminKubeconfig(), { mode: 0o600 });
      const run = (...argv: readonly string[]) =>
        execa(kubeadm, argv, { stripFinalNewline: false, env: { PATH: process.env.PATH }, extendEnv: false });
      for (const name of ['ca', 'apiserver'])
        await run('init', 'phase', 'certs', name, '--cert-dir', join(directory, 'pki'), '--kubernetes-version', 'v1.36.2');
      const check = ['certs', 'check-expiration', '--cert-dir', join(directory, 'pki'), '--kubeconfig', kubeconfig];
      const compare = async (): Promise<string> => {
        const { stdout } = await run(...check);
        expect(await asKubeadm(check)).toMatchObject({ code: 0, stdout });
        return stdout;
      };
      expect(await compare()).toContain('[check-expiration] Error reading configuration from the Cluster');
      for (const object of upgradeCluster({ version: 'v1.36.2', kubelets: { [hostname().toLowerCase()]: 'v1.36.2' } })) api.put(object);
      expect(await compare()).not.toContain('Error');
    } finally {
      await api.close();
      rmSync(directory, { recursive: true, force: true });
    }
  });

  it
    .skipIf(requirement('exit codes compared with kubeadm', absent))
    .each([
      [['tokn']],
      [['certs']],
      [['init', 'phase', 'certs']],
      [['version', '-o', 'wide']],
      [['version', 'x']],
      [['init', '--dry-run=maybe']],
      [['init', '--token-ttl']],
      [['completion']],
      [['completion', 'foo']],
      [['token', 'delete']],
      [['token', 'delete', 'foobar-']],
      [['join']],
      [['init', 'phase']],
      [['config', 'images']],
      [['certs', 'certificate-key', 'extra']],
      [['config', 'images', 'list', '-o', 'wide']],
      [['token', 'generate']],
      [['--help']],
    ])('has the exit code of kubeadm: %j', async (argv) => {
    const { exitCode } = await execa(kubeadm, argv, { reject: false, env: { PATH: process.env.PATH }, extendEnv: false });
    // No command line of this list may reach a host.
    const connectHost = () => Promise.reject(new Error('a host was connected'));
    expect((await asKubeadm(argv, { services: () => ({ connectHost }) })).code).toBe(exitCode);
  });
});

/** Copies programs and their libraries to the same paths below a directory. */
function installPrograms(root: string, programs: readonly string[]): void {
  const libraries = programs.flatMap((program) => execFileSync('ldd', [program], { encoding: 'utf8' }).match(/\/\S+/g) ?? []);
  for (const path of new Set([...programs, ...libraries])) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    copyFileSync(path, join(root, path));
  }
}
