import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonObject } from '../../src/base/json.ts';
import { upTo } from '../../src/base/text/up-to.ts';
import { execStartWords } from '../../src/host/systemd/exec-start.ts';
import { type Catalogue, type Minor, parseMinor } from '../../src/kubelet/catalogue/catalogue.ts';
import { placedFlags } from '../../src/kubelet/effective/kubelet-setup.ts';
import { layerRunningConfig } from '../../src/kubelet/effective/running-config.ts';
import { AGENT_SERVICE, AGENT_UNIT } from '../../src/kubelet/node-agent/agent-units.ts';
import type { LabApiServer } from '../api-server/server.ts';
import { watchDirectory } from './kubelet-pods.ts';
import { configDropInsOf, configPathOf, kubeletCommand, kubeletDropIns, kubeletUnit } from './kubelet-unit.ts';
import type { LabNetwork } from './lab-network.ts';
import { loadPayload } from './load-payload.ts';
import type { CommandAnswer } from './stand-in-commands.ts';
import { StandInControlPlane } from './stand-in-control-plane.ts';
import { StandInKubelet } from './stand-in-kubelet.ts';
import { readYaml, startupFailure, whyRefused } from './startup-failure.ts';
import { formatTimestamp, NO_UNIT, selected } from './systemctl-show.ts';

export interface StandInHostOptions {
  readonly rootDir: string;
  readonly hostname: string;
  /** The version that `kubelet --version` prints, e.g. `v1.36.2`. */
  readonly kubeletVersion: string;
  readonly resolved: boolean;
  readonly now: () => Date;
  /** The host's address inside the lab. */
  readonly address: string;
  readonly network: LabNetwork;
  /** Called with each API server that starts on the host. */
  readonly apiStarted?: (api: LabApiServer) => void;
  readonly catalogue: Catalogue;
}

interface KubeletProcess {
  readonly active: boolean;
  readonly exitStatus: number;
  readonly config: Readonly<Record<string, unknown>>;
  /** Path of the configuration file. */
  readonly path: string;
  /** Its command line, the program first. */
  readonly command: readonly string[];
}

/** The process of an agent's unit. */
export interface AgentProcess {
  /** Its command line, the program first. */
  readonly command: readonly string[];
}

const NO_PROCESS: KubeletProcess = { active: false, exitStatus: 0, config: {}, path: '', command: [] };
/** Higher than every process id of the local host. */
const FIRST_PID = 5_000_000;
const MOST_LINES = 100;
/** Verbs of systemctl that change a unit. */
const CHANGING: ReadonlySet<string> = new Set(['start', 'stop', 'restart', 'enable', 'disable']);

/**
 * The running part of a lab host: a service manager with one unit, and a kubelet that reads its files as the
 * real one does, starts or crashes and answers healthz.
 */
export class StandInHost {
  readonly #options: StandInHostOptions;
  readonly #client: StandInKubelet;
  readonly #controlPlane: StandInControlPlane;
  /** Pulled images. */
  readonly #images = new Set<string>();
  #stopWatching: () => void = () => undefined;
  #kubelet: KubeletProcess = NO_PROCESS;
  #configz: JsonObject | null = null;
  #enabled = false;
  #starts = 0;
  #restarts = 0;
  #startedAt: Date | null = null;
  #agent: AgentProcess | null = null;
  #agentEnabled = false;
  #journal: readonly { readonly at: number; readonly line: string }[] = [];

  constructor(options: StandInHostOptions) {
    this.#options = options;
    const { rootDir, network, hostname, address, kubeletVersion: version, apiStarted: started = () => undefined } = options;
    const log = (level: 'I' | 'E', text: string): void => this.#log(level, text);
    this.#client = new StandInKubelet({ rootDir, network, hostname, address, version, log });
    this.#controlPlane = new StandInControlPlane({ rootDir, loopback: network.loopbackOf(address) ?? '127.0.0.1', started, log });
  }

  /** Number of kubelet starts, which a second run must not increase. */
  get starts(): number {
    return this.#starts;
  }

  /** The kubelet's `/configz`, with the defaults of its version, as it read its files at startup; null: the kubelet is not listening. */
  get configz(): JsonObject | null {
    return this.#kubelet.active ? this.#configz : null;
  }

  #readConfiguration(): JsonObject | null {
    const { path, command } = this.#kubelet;
    const { rootDir, catalogue, kubeletVersion } = this.#options;
    const options = { minor: parseMinor(kubeletVersion) as Minor, catalogue };
    const { config } = loadPayload(join(rootDir, path), options);
    if (config === null) return null;
    const dropIns = configDropInsOf(rootDir, command) ?? [];
    const words = command.map((word) => ({ word, source: 'command line' }));
    const configFile = { path, text: readFileSync(join(rootDir, path), 'utf8') };
    return layerRunningConfig({ ...options, configFile, dynamicConfig: null, dropIns, flags: placedFlags(words, options) }).layered.config;
  }

  /** The agent's process; a new value after each start, null while its unit is stopped. */
  get agent(): AgentProcess | null {
    return this.#agent;
  }

  /** Switches the host off. */
  close(): Promise<void> {
    return this.#stop();
  }

  /** Stops the kubelet and, in contrast to a real host, its static pods. */
  #stop(): Promise<void> {
    this.#client.stop();
    this.#stopWatching();
    return this.#controlPlane.sync(null);
  }

  /** Runs the kubelet and the static pods of a control plane. */
  #run(config: JsonObject): void {
    const { rootDir } = this.#options;
    const directory = typeof config.staticPodPath === 'string' ? config.staticPodPath : '';
    this.#stopWatching();
    this.#stopWatching = watchDirectory(rootDir, directory, () => void this.#controlPlane.sync(directory));
    this.#client.start(config);
  }

  /** Answers one command line of the stand-in commands. */
  answer(commandLine: string): CommandAnswer {
    const [name = '', ...args] = commandLine.split(' ');
    switch (name) {
      case 'systemctl':
        return this.#systemctl(args);
      case 'journalctl':
        return print(...this.#journalFor(args));
      case 'kubelet':
        return this.#runKubelet(args);
      case 'crictl':
        return this.#crictl(args);
      case 'curl':
        return this.#curl(args.find((arg) => /^https?:/.test(arg)) ?? '');
      case 'uname':
        return print(args.includes('-n') ? this.#options.hostname : args.includes('-r') ? '6.12.0-lab' : 'x86_64');
      case 'getent':
        return fail(2);
      case 'ip':
        return print(
          `2: eth0    inet ${this.#options.address}/24 brd 192.168.99.255 scope global eth0`,
          '3: docker0    inet 172.17.0.1/16 brd 172.17.255.255 scope global docker0',
        );
      default:
        return fail(127);
    }
  }

  /**
   * `--version`, or a configuration check that fails, because it runs without a lock file, before anything is
   * started.
   */
  #runKubelet(args: readonly string[]): CommandAnswer {
    const config = args.find((arg) => arg.startsWith('--config='))?.slice('--config='.length);
    if (config === undefined) return print(`Kubernetes ${this.#options.kubeletVersion}`);
    const why = whyRefused(config, config) ?? 'failed to run Kubelet: cannot exit on lock file contention: no lock file specified';
    return { exitCode: 1, lines: [this.#logLine('E', `run.go:72] "command failed" err=${JSON.stringify(why)}`)] };
  }

  #systemctl(args: readonly string[]): CommandAnswer {
    const [verb, unit = ''] = args.filter((arg) => !arg.startsWith('-'));
    if (verb === 'is-active') {
      const active = unit === 'kubelet' ? this.#kubelet.active : unit === 'systemd-resolved' && this.#options.resolved;
      return { exitCode: active ? 0 : 3, lines: [active ? 'active' : 'inactive'] };
    }
    if (verb === 'is-enabled') return print(this.#enabled ? 'enabled' : 'disabled');
    if (unit.startsWith('kubeletadm-revert')) return print();
    if (unit === AGENT_SERVICE || unit === `${AGENT_SERVICE}.service`) return this.#agentUnit(verb ?? '', args);
    if (unit !== 'kubelet' && unit !== 'kubelet.service') {
      if (CHANGING.has(verb ?? '')) return print();
      if (verb === 'show') return print(...selected(NO_UNIT, args));
    }
    if (verb === 'show') {
      this.#restartWhatCrashed();
      this.#showAge();
      return print(...selected(this.#show(), args));
    }
    if (verb === 'enable') this.#enabled = true;
    if (verb === 'stop') {
      void this.#stop();
      this.#kubelet = NO_PROCESS;
      this.#showProcess();
    }
    if (verb === 'restart') {
      this.#restarts = 0;
      this.#start();
    }
    return print();
  }

  /** The agent's unit; the process itself runs in the lab, see `agent`. */
  #agentUnit(verb: string, args: readonly string[]): CommandAnswer {
    const text = this.#has(AGENT_UNIT) ? readFileSync(join(this.#options.rootDir, AGENT_UNIT), 'utf8') : null;
    if (verb === 'show') return print(...selected(this.#showAgent(text !== null), args));
    if (verb === 'enable' || verb === 'disable') this.#agentEnabled = verb === 'enable' && text !== null;
    if (verb === 'stop' || text === null) this.#agent = null;
    if (text === null && verb !== 'stop' && verb !== 'disable') return fail(5);
    if (verb === 'start' || verb === 'restart')
      this.#agent = { command: execStartWords([{ path: AGENT_UNIT, text }], [])?.map(({ word }) => word) ?? [] };
    return print();
  }

  #showAgent(isLoaded: boolean): readonly string[] {
    const active = this.#agent !== null;
    return [
      `LoadState=${isLoaded ? 'loaded' : 'not-found'}`,
      `ActiveState=${active ? 'active' : 'inactive'}`,
      `SubState=${active ? 'running' : 'dead'}`,
      `UnitFileState=${isLoaded ? (this.#agentEnabled ? 'enabled' : 'disabled') : ''}`,
      `FragmentPath=${isLoaded ? AGENT_UNIT : ''}`,
      'DropInPaths=',
      'Restart=always',
      'MainPID=0',
      'Result=success',
      'ExecMainCode=0',
      'ExecMainStatus=0',
      'NRestarts=0',
      'ExecMainStartTimestamp=',
      'NeedDaemonReload=no',
    ];
  }

  #show(): readonly string[] {
    const unit = kubeletUnit(this.#options.rootDir);
    const dropIns = kubeletDropIns(this.#options.rootDir);
    const { active, exitStatus } = this.#kubelet;
    const crashing = !active && exitStatus !== 0;
    return [
      `LoadState=${unit === null ? 'not-found' : 'loaded'}`,
      `ActiveState=${active ? 'active' : crashing ? 'activating' : 'inactive'}`,
      `SubState=${active ? 'running' : crashing ? 'auto-restart' : 'dead'}`,
      `UnitFileState=${this.#enabled ? 'enabled' : 'disabled'}`,
      `FragmentPath=${unit ?? ''}`,
      `DropInPaths=${dropIns.join(' ')}`,
      'Restart=always',
      `MainPID=${active ? FIRST_PID + this.#starts : 0}`,
      `Result=${crashing ? 'exit-code' : 'success'}`,
      `ExecMainCode=${crashing ? 1 : 0}`,
      `ExecMainStatus=${exitStatus}`,
      `NRestarts=${this.#restarts}`,
      `ExecMainStartTimestamp=${this.#startedAt === null ? '' : formatTimestamp(this.#startedAt)}`,
      'NeedDaemonReload=no',
    ];
  }

  /** Restart=always: each query first simulates the restart attempts since the last one. */
  #restartWhatCrashed(): void {
    if (this.#kubelet.active || this.#kubelet.exitStatus === 0) return;
    this.#restarts++;
    this.#start();
  }

  #start(): void {
    this.#starts++;
    this.#startedAt = this.#options.now();
    const command = kubeletCommand(this.#options.rootDir);
    const path = configPathOf(command);
    const failure = startupFailure({ rootDir: this.#options.rootDir, path, command, hasIdentity: this.#client.hasIdentity() });
    if (failure === null) {
      this.#kubelet = { active: true, exitStatus: 0, config: readYaml(join(this.#options.rootDir, path)), path, command };
      this.#showProcess();
      this.#configz = this.#readConfiguration();
      this.#run(this.#configz ?? readYaml(join(this.#options.rootDir, path)));
      this.#log('I', 'server.go:72] "Kubelet version" kubeletVersion="%s"'.replace('%s', this.#options.kubeletVersion));
      return;
    }
    this.#client.stop();
    this.#kubelet = { ...NO_PROCESS, exitStatus: 1 };
    this.#showProcess();
    const isManager = failure.startsWith('invalid Node Allocatable configuration');
    const [place, message] = isManager ? ['kubelet.go:1703', 'Failed to start ContainerManager'] : ['run.go:72', 'command failed'];
    this.#log('E', `${place}] "${message}" err=${JSON.stringify(failure)}`);
  }

  /** The pods are those of a control plane. */
  #crictl(args: readonly string[]): CommandAnswer {
    const verb = args.find((arg) => /^(?:runtime-config|images|pull|pods|ps|logs|stop|stopp|rmp)$/.test(arg));
    switch (verb) {
      case 'runtime-config':
        return print('cgroup driver: SYSTEMD');
      case 'images':
        return print(JSON.stringify({ images: [{ repoTags: [...this.#images] }] }));
      case 'pull':
        this.#images.add(args.at(-1) ?? '');
        return print();
      case 'pods': {
        const [, name] = /io\.kubernetes\.pod\.name=(\S+)/.exec(args.join(' ')) ?? [];
        const pods = this.#controlPlane.components.map((component) => `${component}-${this.#options.hostname}`);
        return print(...pods.filter((pod) => name === undefined || pod === name));
      }
      case 'stop':
        void this.#controlPlane.restart(args.at(-1) ?? '');
        return print();
      case 'ps': {
        const [, running] = /io\.kubernetes\.container\.name=(\S+)/.exec(args.join(' ')) ?? [];
        if (running !== undefined) return print(...[this.#controlPlane.containerOf(running)].filter((id) => id !== null));
        const [, name = ''] = /--name \^(\S+)\$/.exec(args.join(' ')) ?? [];
        return this.#controlPlane.failureOf(name) === null ? print() : print(name);
      }
      case 'logs':
        return print(this.#controlPlane.failureOf(args.at(-1) ?? '') ?? '');
      case undefined:
        return fail(1);
      default:
        return print();
    }
  }

  #curl(url: string): CommandAnswer {
    const { active, config } = this.#kubelet;
    const address = `${String(config.healthzBindAddress ?? '127.0.0.1')}:${String(config.healthzPort ?? 10248)}`;
    if (active && url === `http://${address}/healthz`) return print('ok', '200');
    if (url.includes('/runtime.v1.RuntimeService/')) return print('grpc-status: 0');
    const component = URL.canParse(url) ? this.#controlPlane.answer(new URL(url)) : null;
    if (component !== null) return print(component, '200');
    if (this.#agent !== null && url.endsWith('/readyz')) return print('ok', '200');
    return {
      exitCode: 7,
      lines: [
        `curl: (7) Failed to connect to ${upTo(url.replace(/^https?:\/\//, ''), '/').replace(':', ' port ')} after 0 ms: Couldn't connect to server`,
        '000',
      ],
    };
  }

  /** Writes the process's command line to /proc. */
  #showProcess(): void {
    const at = (starts: number): string => join(this.#options.rootDir, `proc/${FIRST_PID + starts}`);
    rmSync(at(this.#starts - 1), { recursive: true, force: true });
    rmSync(at(this.#starts), { recursive: true, force: true });
    if (!this.#kubelet.active) return;
    mkdirSync(at(this.#starts), { recursive: true });
    writeFileSync(join(at(this.#starts), 'cmdline'), this.#kubelet.command.map((word) => `${word}\0`).join(''));
    this.#showAge();
  }

  /**
   * Writes the start time of the process by the host's clock in the kernel's format: ticks since the boot of
   * the local host.
   */
  #showAge(): void {
    if (!this.#kubelet.active || this.#startedAt === null) return;
    const ageMs = this.#options.now().getTime() - this.#startedAt.getTime();
    const upSeconds = Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0]);
    const pid = FIRST_PID + this.#starts;
    const fields = [pid, '(kubelet)', 'S', ...Array.from({ length: 18 }, () => 0), Math.round(upSeconds * 100 - ageMs / 10)];
    writeFileSync(join(this.#options.rootDir, `proc/${pid}/stat`), `${fields.join(' ')}\n`);
  }

  #has(path: string): boolean {
    return existsSync(join(this.#options.rootDir, path));
  }

  #log(level: string, text: string): void {
    this.#journal = [...this.#journal.slice(1 - MOST_LINES), { at: this.#options.now().getTime(), line: this.#logLine(level, text) }];
  }

  /** @param seconds since 1970; absent: all */
  #journalFor(args: readonly string[]): readonly string[] {
    const since = Number(args.find((arg) => arg.startsWith('--since=@'))?.slice('--since=@'.length) ?? 0) * 1000;
    const lines = this.#journal.filter(({ at }) => at >= since).map(({ line }) => line);
    return args.includes('--reverse') ? lines.reverse() : lines;
  }

  #logLine(level: string, text: string): string {
    const time = this.#options.now().toISOString();
    return `${level}${time.slice(5, 7)}${time.slice(8, 10)} ${time.slice(11, 23)}000       1 ${text}`;
  }
}

function print(...lines: readonly string[]): CommandAnswer {
  return { exitCode: 0, lines };
}

function fail(exitCode: number): CommandAnswer {
  return { exitCode, lines: [] };
}
