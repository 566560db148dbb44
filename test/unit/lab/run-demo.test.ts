import { describe, expect, it } from 'vitest';
import { ACTS, type DemoStage, NotObserved } from '../../../lab/run-demo.ts';

type Host = 'node1' | 'node2' | 'node3';
const RESTARTS = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler']
  .map((name) => `${name} runs in a new container\n`)
  .join('');

type Files = Record<string, { text: string; changedAt: number }>;

const CONFIG = '/var/lib/kubelet/config.yaml';
const EXPECTED: readonly (readonly [string, number])[] = [
  ['plan', 0],
  ['apply --allow', 5],
  ['apply refused', 3],
  ['apply', 0],
  ['fleet drift', 6],
  ['node explain', 0],
  ['certs renew', 0],
];

/** Hosts on which every command has the result that its act expects. `faults` change single results. */
function stageOf(faults: (world: World) => Partial<DemoStage> = () => ({})) {
  const world = new World();
  const files = (host: string): Files => world.files[host as Host];
  const stage: DemoStage = {
    fleetFile: '/demo/fleet.yaml',
    sshConfig: '/demo/lab/ssh_config',
    reportFile: '/demo/report.html',
    run: async (argv) => world.run(argv.join(' ')),
    runProgram: async (argv) => world.edit(argv.join(' ')),
    readHostFile: async (host, path) => ({ ...(files(host)[path] ?? expect.unreachable(path)) }),
    pathOf: (host, path) => `/demo/lab/${host}${path}`,
    kubeletStarts: (host) => world.starts[host as Host],
    readNodes: async () => world.nodes(),
    readReport: async () => '<!doctype html><html></html>',
  };
  return { world, stage: { ...stage, ...faults(world) } };
}

class World {
  fleet = { maxPods: '110', memory: '512Mi' };
  starts: Record<Host, number> = { node1: 0, node2: 0, node3: 0 };
  files: Record<Host, Files> = { node1: {}, node2: {}, node3: {} };
  /** The command lines, without paths. */
  lines: string[] = [];
  exitCodes: Record<string, number> = Object.fromEntries(EXPECTED);
  #time = 0;

  write(host: Host, path: string, text: string): void {
    this.files[host][path] = { text, changedAt: ++this.#time };
  }

  edit(line: string): void {
    const [, from = '', to = ''] = /s\/(?:maxPods: )?(\w+)\/(?:maxPods: )?(\w+)\//.exec(line) ?? [];
    if (/config\.yaml$/.test(line)) this.write('node3', CONFIG, `maxPods: ${to}\n`);
    else if (from !== '') this.fleet = from === '110' ? { ...this.fleet, maxPods: to } : { ...this.fleet, memory: to };
  }

  run(line: string): { exitCode: number; stdout: string; stderr: string } {
    const isBad = this.fleet.memory === '64Gi';
    const name = line.startsWith('apply') && isBad ? (line.includes('--allow') ? 'apply --allow' : 'apply refused') : line;
    const [key = '', exitCode] = Object.entries(this.exitCodes).find(([start]) => name.startsWith(start)) ?? [];
    this.lines.push(line.replaceAll(/\S*\//g, ''));
    if (key === 'apply') this.#apply();
    if (key === 'apply --allow') this.starts.node2 += 2;
    if (key === 'certs renew') this.#certificates('new');
    const outputs: Record<string, string> = {
      'fleet drift': 'node3  config.yaml  maxPods: 60, on disk 200\n',
      'node explain': `maxPods  200  ${CONFIG}:38, the fleet file declares 60\n`,
    };
    return { exitCode: exitCode ?? expect.unreachable(line), stdout: outputs[key] ?? '', stderr: key === 'certs renew' ? RESTARTS : '' };
  }

  nodes(): Awaited<ReturnType<DemoStage['readNodes']>> {
    return Object.entries(this.starts).flatMap(([name, starts]) => (starts > 0 ? [{ name, isReady: true, pods: this.fleet.maxPods }] : []));
  }

  #apply(): void {
    const isFirst = this.starts.node1 === 0;
    if (isFirst) this.#certificates('old');
    for (const host of isFirst ? (['node1', 'node2', 'node3'] as const) : (['node2', 'node3'] as const)) {
      this.starts[host]++;
      this.write(host, CONFIG, `maxPods: ${this.fleet.maxPods}\n`);
    }
  }

  #certificates(text: string): void {
    for (const path of ['apiserver.crt', 'etcd/server.crt']) this.write('node1', `/etc/kubernetes/pki/${path}`, text);
  }
}

async function play(stage: DemoStage): Promise<readonly string[]> {
  const observed: string[] = [];
  for (const act of ACTS) observed.push(await act.play(stage));
  return observed;
}

describe('the acts of the demo', () => {
  it('run these commands, and end with what was observed', async () => {
    const { stage, world } = stageOf();
    expect(await play(stage)).toHaveLength(5);
    expect(world.lines).toEqual([
      'plan -f fleet.yaml',
      'apply --yes -f fleet.yaml',
      'apply --yes -f fleet.yaml --canary node2',
      'apply --yes -f fleet.yaml',
      'apply --yes -f fleet.yaml --allow unsafe --allow-pod-loss --report report.html',
      'fleet drift -f fleet.yaml --exit-code',
      'node explain node3 maxPods -f fleet.yaml',
      'certs renew all --restart --host node1 --ssh-config ssh_config',
    ]);
  });

  it.each(EXPECTED)('fail if %s has another exit code', async (name) => {
    const { stage, world } = stageOf();
    world.exitCodes[name] = 1;
    await expect(play(stage)).rejects.toThrow(NotObserved);
  });

  const during =
    (pattern: RegExp, fault: (world: World) => void) =>
    (world: World): Partial<DemoStage> => ({
      run: async (argv) => {
        const result = world.run(argv.join(' '));
        if (pattern.test(argv.join(' '))) fault(world);
        return result;
      },
    });
  it.each([
    ['plan starts a kubelet', during(/^plan/, ({ starts }) => void starts.node1++)],
    ['a Node is not registered', during(/^apply/, ({ starts }) => Object.assign(starts, { node3: 0 }))],
    ['the other worker is changed before the canary', during(/--canary/, (world) => world.write('node2', CONFIG, 'maxPods: 60\n'))],
    ['a worker keeps its value', during(/--canary/, (world) => world.write('node3', CONFIG, 'maxPods: 110\n'))],
    ['the control plane is restarted by the change of workers', during(/--canary/, ({ starts }) => void starts.node1++)],
    ['a worker is restarted twice', during(/--canary/, ({ starts }) => void starts.node3++)],
    ['the node after the canary is restarted by the bad value', during(/--allow /, ({ starts }) => void starts.node3++)],
    ['the bad value stays', during(/--allow /, (world) => world.write('node2', CONFIG, 'bad\n'))],
    ['the canary is never restarted', during(/--allow /, ({ starts }) => Object.assign(starts, { node2: 2 }))],
    ['the certificates restart a kubelet', during(/^certs/, ({ starts }) => void starts.node2++)],
    ['a certificate stays', during(/^certs/, (world) => world.write('node1', '/etc/kubernetes/pki/etcd/server.crt', 'old'))],
    ['a Node is not Ready', () => ({ readNodes: async () => [{ name: 'node1', isReady: false, pods: '110' }] })],
    ['the report is empty', () => ({ readReport: async () => '' })],
  ])('fail if %s', async (_, faults) => {
    await expect(play(stageOf(faults).stage)).rejects.toThrow(NotObserved);
  });

  it.each([
    ['drift names no host', /^fleet drift/],
    ['explain names no line', /^node explain/],
    ['a static Pod keeps its container', /^certs renew/],
  ])('fail if %s', async (_, pattern) => {
    const { stage } = stageOf((world) => ({
      run: async (argv) => ({
        ...world.run(argv.join(' ')),
        ...(pattern.test(argv.join(' ')) ? { stdout: 'maxPods 200 60\n', stderr: '' } : {}),
      }),
    }));
    await expect(play(stage)).rejects.toThrow(NotObserved);
  });
});
