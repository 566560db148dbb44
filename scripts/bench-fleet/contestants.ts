import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import type { Job, Outcome } from './ours.ts';
import { workFiles } from './work.ts';
import type { World } from './world.ts';

/**
 * One way to apply the work to hosts. `run` resolves with its wall time in ms, including the start of its own
 * process.
 */
export interface Contestant {
  readonly name: string;
  /** The missing program; null when none is missing. */
  readonly missing: string | null;
  run(where: Where): Promise<Run>;
}

export interface Where {
  readonly addresses: readonly string[];
  /** The port of the server, or of the relay in front of it. */
  readonly port: number;
  readonly bastion?: { readonly address: string; readonly port: number };
  readonly connectTimeoutMs?: number;
  /** Maximum number of parallel hosts; default: the contestant's own default. */
  readonly forks?: number;
}

export interface Run {
  readonly wallMs: number;
  /** Only for contestants that are one process and report it. */
  readonly outcome?: Outcome;
}

/** All contestants, kubeletadm first. */
export async function makeContestants(world: World): Promise<readonly Contestant[]> {
  const program = await bundle(world, 'ours.ts');
  return [
    ours(world, program, 'kubeletadm', false),
    ours(world, program, 'kubeletadm, each host locked', true),
    rawSsh(world),
    await naiveNodeSsh(world),
    ansible(world, 'ansible, tuned', tunedConfig),
    ansible(world, 'ansible, mitogen', mitogenConfig),
    ansible(world, 'ansible, default', defaultConfig),
  ];
}

/** Maximum number of parallel hosts for contestants without a default. */
export const FORKS = 50;

function ours(world: World, program: string, name: string, locks: boolean): Contestant {
  return {
    name,
    missing: null,
    run: async ({ addresses, port, bastion, connectTimeoutMs = 20_000, forks = FORKS }) => {
      const { user, identityFile, knownHostsFile, rootsDirectory } = world;
      const job: Job = {
        addresses,
        port,
        user,
        identityFile,
        knownHostsFile,
        rootsDirectory,
        locks,
        forks,
        connectTimeoutMs,
        ...(bastion === undefined ? {} : { bastion }),
      };
      return runNode(world, program, job);
    },
  };
}

async function naiveNodeSsh(world: World): Promise<Contestant> {
  const program = await bundle(world, 'naive-node-ssh.ts');
  return {
    name: 'node-ssh, putFile and exec',
    missing: null,
    run: ({ addresses, port, forks = FORKS }) => {
      const { user, identityFile, rootsDirectory, directory } = world;
      return runNode(world, program, { addresses, port, user, identityFile, rootsDirectory, directory, forks });
    },
  };
}

async function runNode(world: World, program: string, job: object): Promise<Run> {
  const path = join(world.directory, 'job.json');
  writeFileSync(path, JSON.stringify(job));
  const { wallMs, stdout } = await timed(process.execPath, [program, path]);
  const outcome: Outcome = JSON.parse(stdout);
  return { wallMs, outcome };
}

async function bundle(world: World, entry: string): Promise<string> {
  const outfile = join(world.directory, entry.replace(/ts$/, 'cjs'));
  await build({
    entryPoints: [join(import.meta.dirname, entry)],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'cjs',
    target: 'node20',
    minify: true,
    external: ['cpu-features', '*.node'],
    logLevel: 'error',
  });
  return outfile;
}

/** The lower bound: as many parallel `ssh HOST sh -s`, each with the whole work on stdin. */
function rawSsh(world: World): Contestant {
  return {
    name: 'ssh HOST sh -s, in parallel',
    missing: null,
    run: async ({ addresses, port, forks = FORKS }) => {
      const directory = join(world.directory, 'raw');
      mkdirSync(directory, { recursive: true });
      for (const address of addresses) writeFileSync(join(directory, address), rawScript(address, join(world.rootsDirectory, address)));
      const flags = sshFlags(world).join(' ');
      const one = `exec ssh ${flags} -p ${port} ${world.user}@"$1" sh -s <"${directory}/$1"`;
      writeFileSync(join(directory, 'one'), `#!/bin/sh\n${one}\n`, { mode: 0o755 });
      writeFileSync(join(directory, 'hosts'), `${addresses.join('\n')}\n`);
      const { wallMs } = await timed('xargs', ['-a', join(directory, 'hosts'), '-n', '1', '-P', String(forks), join(directory, 'one')]);
      return { wallMs };
    },
  };
}

export function sshFlags(world: World): readonly string[] {
  const options = ['BatchMode=yes', 'IdentitiesOnly=yes', `UserKnownHostsFile=${world.knownHostsFile}`, 'GlobalKnownHostsFile=none'];
  return ['-F', 'none', '-i', world.identityFile, ...options.flatMap((option) => ['-o', option])];
}

/** The shortest program that does the work: no queries, no flushes. */
function rawScript(address: string, root: string): string {
  const writes = workFiles(address).map(({ path, mode, content }) => {
    const at = `${root}${path}`;
    return `cat >'${at}.new' <<'EOF'\n${content}EOF\nchmod ${mode.toString(8)} '${at}.new'\nmv -f '${at}.new' '${at}'\n`;
  });
  return `set -e\numask 077\n${writes.join('')}systemctl restart kubelet\n`;
}

type AnsibleConfig = (directory: string) => string;

const defaultConfig: AnsibleConfig = () => '[defaults]\n';

const tunedConfig: AnsibleConfig = (directory) =>
  `[defaults]\nforks = ${FORKS}\n[ssh_connection]\npipelining = True\nssh_args = -o ControlMaster=auto -o ControlPersist=60s\ncontrol_path_dir = ${directory}/cp\n`;

const MITOGEN = '/usr/lib/python3/dist-packages/ansible_mitogen/plugins/strategy';

const mitogenConfig: AnsibleConfig = () => `[defaults]\nforks = ${FORKS}\nstrategy_plugins = ${MITOGEN}\nstrategy = mitogen_linear\n`;

function ansible(world: World, name: string, config: AnsibleConfig): Contestant {
  const program = '/usr/bin/ansible-playbook';
  const desired = config === mitogenConfig ? [program, MITOGEN] : [program];
  const absent = desired.find((path) => !existsSync(path));
  return {
    name,
    missing: absent === undefined ? null : `${absent} (Debian packages ansible-core, ansible-mitogen)`,
    run: async ({ addresses, port }) => {
      const directory = join(world.directory, name.replace(/\W+/g, '-'));
      // A cold start like for all others: no control connection of the previous run.
      rmSync(directory, { recursive: true, force: true });
      mkdirSync(directory, { recursive: true });
      const files = join(directory, 'files');
      for (const address of addresses) {
        for (const { path, content } of workFiles(address)) {
          const at = join(files, address, path);
          mkdirSync(join(at, '..'), { recursive: true });
          writeFileSync(at, content);
        }
      }
      writeFileSync(join(directory, 'ansible.cfg'), config(directory));
      writeFileSync(join(directory, 'hosts.ini'), inventory(world, addresses, port));
      writeFileSync(join(directory, 'play.yaml'), playbook(world, files));
      chmodSync(directory, 0o755);
      const environment = {
        ...plainEnvironment(),
        ANSIBLE_CONFIG: join(directory, 'ansible.cfg'),
        ANSIBLE_LOCAL_TEMP: join(directory, 'tmp'),
      };
      const args = ['-i', join(directory, 'hosts.ini'), join(directory, 'play.yaml')];
      const { wallMs } = await timed(program, args, { ...environment, ANSIBLE_SSH_CONTROL_PATH_DIR: join(directory, 'cp') });
      return { wallMs };
    },
  };
}

function inventory(world: World, addresses: readonly string[], port: number): string {
  const flags = sshFlags(world).slice(4).join(' ');
  const variables = [
    `ansible_user=${world.user}`,
    `ansible_port=${port}`,
    `ansible_ssh_private_key_file=${world.identityFile}`,
    `ansible_ssh_common_args="-F none ${flags}"`,
    'ansible_python_interpreter=/usr/bin/python3',
  ];
  return `[all]\n${addresses.join('\n')}\n[all:vars]\n${variables.join('\n')}\n`;
}

/** Without gathering facts: the other contestants gather none. */
function playbook(world: World, files: string): string {
  const copies = workFiles('x').map(
    ({ path, mode }) =>
      `  - copy: {src: "${files}/{{ inventory_hostname }}${path}", dest: "${world.rootsDirectory}/{{ inventory_hostname }}${path}", mode: "${mode.toString(8).padStart(4, '0')}"}\n    notify: restart\n`,
  );
  return `- hosts: all\n  gather_facts: false\n  tasks:\n${copies.join('')}  handlers:\n  - name: restart\n    command: systemctl restart kubelet\n`;
}

/**
 * The same environment for all, without the user's variables: additional CA certificates
 * (NODE_EXTRA_CA_CERTS) dominate the startup time of Node.js.
 */
function plainEnvironment(): NodeJS.ProcessEnv {
  const { PATH, HOME, USER } = process.env;
  return { PATH, HOME, USER, LANG: 'C.UTF-8' };
}

function timed(program: string, args: readonly string[], env = plainEnvironment()): Promise<{ wallMs: number; stdout: string }> {
  const start = process.hrtime.bigint();
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    const out: Buffer[] = [];
    const errors: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => out.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => errors.push(chunk));
    child.once('error', reject);
    child.once('close', (code) => {
      const wallMs = Number(process.hrtime.bigint() - start) / 1e6;
      const stdout = Buffer.concat(out).toString();
      if (code === 0) resolve({ wallMs, stdout });
      else reject(new Error(`${program} exited with code ${code}: ${stdout.slice(-1500)}${Buffer.concat(errors).toString().slice(-1500)}`));
    });
  });
}
