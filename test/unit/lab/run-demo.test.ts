import { describe, expect, it } from 'vitest';
import type { Lab } from '../../../lab/lab-options.ts';
import { changeKubelets, type DemoEvent, type DemoPorts, type DemoView, runDemo } from '../../../lab/run-demo.ts';
import type { ExitCode } from '../../../src/base/errors.ts';
import { Secret } from '../../../src/base/text/secret.ts';
import { fakeCluster } from '../../support/fake-cluster.ts';

const JOIN = 'join 127.0.0.1:1 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash sha256:00';
const KUBECONFIG = `apiVersion: v1
kind: Config
current-context: lab
contexts: [{name: lab, context: {cluster: lab, user: lab}}]
clusters: [{name: lab, cluster: {server: 'https://127.0.0.1:1'}}]
users: [{name: lab, user: {token: t}}]
`;

function labOf(names: readonly string[]): Lab {
  return {
    directory: '/lab',
    server: 'https://127.0.0.1:1',
    kubeconfig: '/lab/admin.conf',
    sshConfig: '/lab/ssh_config',
    caFile: '/lab/ca.crt',
    token: new Secret('abcdef.0123456789abcdef'),
    hosts: names.map((name) => ({
      name,
      port: 22,
      rootDir: `/lab/${name}`,
      loopback: '127.0.0.2',
      kubeletStarts: () => 1,
      agent: () => null,
    })),
    close: async () => undefined,
  };
}

interface Recording extends DemoView {
  readonly lines: readonly string[];
  readonly events: readonly DemoEvent[];
}

/** A view whose command lines end with the first code whose pattern matches, otherwise with 0. */
function recordingView(codes: readonly (readonly [RegExp, ExitCode])[] = []): Recording {
  const lines: string[] = [];
  const events: DemoEvent[] = [];
  return {
    lines,
    events,
    run: async (argv) => {
      const line = argv.join(' ');
      lines.push(line);
      const exitCode = codes.find(([pattern]) => pattern.test(line))?.[1] ?? 0;
      return { exitCode, stdout: line.startsWith('cluster adopt') ? `Join the other nodes with:\n\n  kubeletadm ${JOIN}\n` : '' };
    },
    report: (event) => events.push(event),
    agentFailed: (nodeName, error) => {
      throw new Error(`the agent of ${nodeName} failed: ${String(error)}`);
    },
  };
}

function stepsOf({ events }: Recording): readonly string[] {
  return events.flatMap((event) => (event.kind === 'step' ? [event.step] : []));
}

/** The ports of a demo without agents. */
function demoPorts(): DemoPorts {
  const texts: Readonly<Record<string, string>> = {
    '/lab/admin.conf': KUBECONFIG,
    '/lab/node1/var/lib/kubelet/config.yaml': 'authentication: {}\ncgroupDriver: systemd\nmaxPods: 110\n',
    '/lab/node1/var/lib/kubelet/kubeadm-flags.env': 'KUBELET_KUBEADM_ARGS=""\n',
  };
  const configMap = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'kubelet-config', namespace: 'kube-system', annotations: { a: 'b' } },
    data: { kubelet: 'kind: KubeletConfiguration\nmaxPods: 110\n' },
  };
  const ports: Partial<DemoPorts> = {
    input: {
      readText: async (path) => texts[path] ?? expect.unreachable(`${path} is read`),
      readTree: async () => [],
      exists: async () => true,
      isDirectory: async () => false,
      askSecret: async () => null,
    },
    connectCluster: async () => fakeCluster({ objects: [configMap] }),
    listFiles: async (root) => [`644 ${root}/etc/kubernetes/kubelet.conf`],
  };
  return ports as DemoPorts;
}

describe('the demo in a lab of one host', () => {
  it('runs each command twice and shows the files and the configuration in between', async () => {
    const view = recordingView();
    expect(await runDemo(demoPorts(), labOf(['node1']), view)).toBe('succeeded');
    const adopt = 'cluster adopt --kubeconfig /lab/admin.conf --control-plane-endpoint 127.0.0.1:1 --print-join-command';
    const join = `${JOIN} --ssh-config /lab/ssh_config --host node1`;
    const again = ' --dry-run --exit-code';
    expect(view.lines).toEqual([adopt, join, adopt + again, join + again]);
    expect(stepsOf(view)).toEqual(['adopt', 'join', 'files', 'cluster', 'second-run']);
    expect(view.events.filter(({ kind }) => kind !== 'step')).toEqual([
      {
        kind: 'host-files',
        host: 'node1',
        files: ['644 /lab/node1/etc/kubernetes/kubelet.conf'],
        configLines: ['cgroupDriver: systemd', 'maxPods: 110'],
        flagsEnv: 'KUBELET_KUBEADM_ARGS=""',
      },
      { kind: 'cluster-config', lines: 2, annotations: { a: 'b' } },
      { kind: 'starts', starts: [{ host: 'node1', count: 1 }], isUnchanged: true },
    ]);
  });

  it('reports changes that are pending in the second run', async () => {
    const view = recordingView([[/^cluster adopt .*--dry-run/, 6]]);
    expect(await runDemo(demoPorts(), labOf(['node1']), view)).toBe('unexpected');
    expect(view.events.at(-1)).toMatchObject({ kind: 'starts', isUnchanged: false });
  });
});

describe('the demo in a lab of three hosts', () => {
  const lab = labOf(['node1', 'node2', 'node3']);

  it('stops if cluster adopt fails', async () => {
    const view = recordingView([[/^cluster adopt/, 3]]);
    expect(await runDemo(demoPorts(), lab, view)).toBe('stopped');
    expect(stepsOf(view)).toEqual(['adopt']);
  });

  it('runs the printed join command on the hosts, and stops if join fails', async () => {
    const view = recordingView([[/^join .*node3/, 4]]);
    expect(await runDemo(demoPorts(), lab, view)).toBe('stopped');
    const join = `${JOIN} --ssh-config /lab/ssh_config`;
    expect(view.lines.slice(1)).toEqual([`${join} --host node1`, `${join} --host node2 --host node3 --set maxPods=60`]);
    expect(stepsOf(view)).toEqual(['adopt', 'join']);
  });
});

describe('the changes of running kubelets', () => {
  const names = ['node2', 'node3'];
  const assign = (file: string): string => `dynamic assign node2 node3 --kubeconfig /lab/admin.conf --min-ready 0s --file /lab/${file}`;
  const EXPECTED = [
    [/more-pods/, 0],
    [/reserved\.yaml$/, 3],
    [/--allow-pod-loss$/, 4],
    [/^dynamic reset/, 0],
  ] as const;

  it('assign a valid configuration, a failing one without and with --allow-pod-loss, and none', async () => {
    const view = recordingView(EXPECTED);
    const written = new Map<string, string>();
    const writeLocalFile = async (path: string, text: string): Promise<void> => void written.set(path, text);
    expect(await changeKubelets({ writeLocalFile }, labOf([]), { names, view })).toBe(true);
    const status = 'dynamic status node2 node3 --kubeconfig /lab/admin.conf';
    expect(view.lines).toEqual([
      `${assign('more-pods.yaml')} --wait good`,
      status,
      assign('reserved.yaml'),
      `${assign('reserved.yaml')} --allow-pod-loss`,
      status,
      'dynamic reset node2 node3 --kubeconfig /lab/admin.conf --min-ready 0s --max-unavailable 100%',
    ]);
    const header = 'apiVersion: kubeletadm.dev/v1alpha1\nkind: KubeletConfigurationOverlay\n';
    expect([...written]).toEqual([
      ['/lab/more-pods.yaml', `${header}maxPods: 120\n`],
      ['/lab/reserved.yaml', `${header}systemReserved:\n  memory: 64Gi\n`],
    ]);
    expect(view.events.map((event) => (event.kind === 'file-written' ? event.path : event.kind === 'step' && event.step))).toEqual([
      'assign',
      '/lab/more-pods.yaml',
      'refuse',
      '/lab/reserved.yaml',
      'reset',
    ]);
  });

  it.each([
    ['the valid configuration fails', /more-pods/, 5],
    ['the failing configuration is not refused', /reserved\.yaml$/, 0],
    ['the failing configuration does not roll back', /--allow-pod-loss$/, 0],
    ['the assignment is not removed', /^dynamic reset/, 4],
  ] as const)('are unexpected if %s', async (_, line, exitCode) => {
    const view = recordingView([[line, exitCode], ...EXPECTED]);
    expect(await changeKubelets({ writeLocalFile: async () => undefined }, labOf([]), { names, view })).toBe(false);
    expect(view.lines).toHaveLength(6);
  });
});
