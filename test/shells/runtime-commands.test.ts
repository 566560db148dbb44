import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { execa } from 'execa';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  countPodProcesses,
  lastLog,
  listImages,
  listLiveContainers,
  listPods,
  listRunningContainers,
  pullImage,
  removePods,
  stopContainers,
} from '../../src/host/cri/runtime-commands.ts';
import { findProgram, ofThisProject } from '../support/shells.ts';

/**
 * Records its arguments. Has the pods a, b and c. Stopping a pod in `NEVER` always fails, a pod in `ONCE` the
 * first two times: with all others, and once alone.
 */
const CRICTL = `#!/bin/sh
cd "$(dirname "$0")" || exit 1
echo "crictl $*" >> calls
case "$*" in
  *"pods -q") printf 'a\\nb\\nc\\n';;
  *"stopp "*) for pod; do
    [ "$pod" = "$NEVER" ] && exit 1
    [ "$pod" != "$ONCE" ] || [ -e seen ] || { [ ! -e tried ] || touch seen; touch tried; exit 1; }
  done;;
  *"images --output json") echo '{"images":[]}';;
  *"pods -q --state ready --label io.kubernetes.pod.namespace=kube-system --label io.kubernetes.pod.name=etcd-cp-1") printf %s "$SANDBOX";;
  *"--state running --label io.kubernetes.pod.namespace=kube-system --label io.kubernetes.pod.name=etcd-cp-1") printf %s "$LIVE"; [ -z "$NEVER" ];;
  *"ps -q --state running --label io.kubernetes.pod.namespace=kube-system --label io.kubernetes.container.name=etcd") printf %s "$LIVE"; [ -z "$NEVER" ];;
  *"ps -a --name ^etcd$ --last 1 -q") echo 0a;;
  *"logs --tail 20 0a") echo 'from crictl';;
esac
`;
/** containerd's client: the same with containers, and one image per line. */
const CTR = `#!/bin/sh
cd "$(dirname "$0")" || exit 1
echo "ctr $*" >> calls
case "$*" in
  *'containers ls -q labels."io.kubernetes.pod.name"==etcd-cp-1,labels."io.kubernetes.pod.namespace"==kube-system') printf 'x\nstopped\n'; [ -z "$NEVER" ];;
  *'containers ls -q labels."io.kubernetes.container.name"==etcd,labels."io.kubernetes.pod.namespace"==kube-system') printf 'x\nstopped\n'; [ -z "$NEVER" ];;
  *"tasks ls") printf 'TASK PID STATUS\nstopped 9 STOPPED\nother 8 RUNNING\n%s' "$LIVE";;
  *"containers ls -q") printf 'a\\nb\\n';;
  *"containers rm "*) for c; do [ "$c" != "$NEVER" ] || exit 1; done;;
  *"images ls -q") echo registry.k8s.io/pause:3;;
  *"images pull"*) echo 'a progress bar'; [ -z "$NEVER" ];;
esac
`;
const SHELLS = ['dash', 'bash', 'busybox'].filter((name) => findProgram(name) !== null);

/** Its path on the host, for which a directory stands. */
const SOCKET = '/x.sock';

describe.each(ofThisProject(SHELLS))('container runtime commands in %s', (shell) => {
  let directory = '';
  let server: Server;
  let socket = '';
  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'ka-cri-'));
    socket = join(directory, SOCKET);
    server = createServer();
    await new Promise<void>((resolve) => server.listen(socket, resolve));
    for (const name of ['cat', 'dirname', 'find', 'grep', 'head', 'ls', 'sed', 'sort', 'tail', 'touch'])
      symlinkSync(findProgram(name) as string, join(directory, name));
    install('sleep', '#!/bin/sh\n');
  });
  afterEach(async () => {
    await new Promise((resolve) => server.close(resolve));
    rmSync(directory, { recursive: true, force: true });
  });

  function install(name: string, text: string): void {
    writeFileSync(join(directory, name), text);
    chmodSync(join(directory, name), 0o755);
  }

  /** PATH contains only the installed programs. */
  async function run([, ...args]: readonly [string, ...string[]], env: Record<string, string> = {}) {
    const program = findProgram(shell) as string;
    const rest = shell === 'busybox' ? ['sh', ...args] : args;
    const { exitCode, stdout, stderr } = await execa(program, rest, {
      reject: false,
      stdin: 'ignore',
      extendEnv: false,
      env: { PATH: directory, KUBELETADM_ROOT: directory, ...env },
    });
    const calls = existsSync(join(directory, 'calls')) ? readFileSync(join(directory, 'calls'), 'utf8').trim().split('\n') : [];
    return { exitCode, stdout, stderr, calls };
  }

  it('use crictl when it exists', async () => {
    install('crictl', CRICTL);
    install('ctr', CTR);
    const at = `crictl --runtime-endpoint unix://${socket}`;
    expect(await run(listImages(`unix://${SOCKET}`))).toMatchObject({ exitCode: 0, stdout: '{"images":[]}' });
    expect(await run(pullImage(SOCKET, 'registry.k8s.io/pause:3'))).toMatchObject({
      exitCode: 0,
      calls: [`${at} --timeout 10s images --output json`, `${at} --timeout 15m pull registry.k8s.io/pause:3`],
    });
    expect(await run(lastLog(SOCKET, 'etcd'))).toMatchObject({ exitCode: 0, stdout: 'from crictl' });
  });

  it("use containerd's ctr without crictl", async () => {
    install('ctr', CTR);
    const at = `ctr --address ${socket} --namespace k8s.io`;
    expect(await run(listImages(`unix://${SOCKET}`))).toMatchObject({ exitCode: 0, stdout: 'registry.k8s.io/pause:3' });
    const pulled = await run(pullImage(`unix://${SOCKET}`, 'pause:3'));
    expect(pulled).toMatchObject({ exitCode: 0, stdout: '' });
    expect(pulled.calls.at(-1)).toMatch(
      / --timeout 15m images pull (?:--hosts-dir \/etc\/containerd\/certs\.d )?docker\.io\/library\/pause:3$/,
    );
    expect(await run(pullImage(SOCKET, 'x/y:1'), { NEVER: 'x' })).toMatchObject({ exitCode: 1 });
    expect(await run(listPods(SOCKET))).toMatchObject({ exitCode: 0, stdout: 'a\nb' });
    const { exitCode, calls } = await run(removePods(SOCKET, false));
    expect([exitCode, ...calls.slice(-3)]).toEqual([0, `${at} containers ls -q`, `${at} tasks rm -f a b`, `${at} containers rm a b`]);
    expect(await run(removePods(SOCKET, false), { NEVER: 'a' })).toMatchObject({ exitCode: 1, stderr: 'cannot remove these Pods: a' });
  });

  it('list the live containers and sandboxes of a Pod', async () => {
    install('ctr', CTR);
    const list = listLiveContainers(SOCKET, 'etcd-cp-1');
    expect(await run(list)).toMatchObject({ exitCode: 0, stdout: '' });
    expect(await run(list, { LIVE: 'x 7 RUNNING\n' })).toMatchObject({ exitCode: 0, stdout: 'x' });
    expect(await run(list, { NEVER: 'x' })).toMatchObject({ exitCode: 1 });
    install('crictl', CRICTL);
    expect(await run(list)).toMatchObject({ exitCode: 0, stdout: '' });
    expect(await run(list, { LIVE: '0a\n' })).toMatchObject({ exitCode: 0, stdout: '0a' });
    expect(await run(list, { SANDBOX: '0b\n' })).toMatchObject({ exitCode: 0, stdout: '0b' });
    expect(await run(list, { NEVER: 'x' })).toMatchObject({ exitCode: 1 });
    expect(await run(listLiveContainers(`${SOCKET}.gone`, 'etcd-cp-1'))).toMatchObject({ exitCode: 1 });
  });

  it('stop the running containers of a component, and fail if they are unknown', async () => {
    install('ctr', CTR);
    expect(await run(listRunningContainers(SOCKET, 'etcd'), { LIVE: 'x 7 RUNNING\n' })).toMatchObject({ exitCode: 0, stdout: 'x' });
    const killed = await run(stopContainers(SOCKET, 'etcd'), { LIVE: 'x 7 RUNNING\n' });
    expect([killed.exitCode, killed.calls.at(-1)]).toEqual([0, `ctr --address ${socket} --namespace k8s.io tasks kill --signal SIGTERM x`]);
    install('crictl', CRICTL);
    expect(await run(listRunningContainers(SOCKET, 'etcd'), { LIVE: '0a\n' })).toMatchObject({ exitCode: 0, stdout: '0a' });
    const stopped = await run(stopContainers(SOCKET, 'etcd'), { LIVE: '0a\n' });
    expect([stopped.exitCode, stopped.calls.at(-1)]).toEqual([
      0,
      `crictl --runtime-endpoint unix://${socket} --timeout 40s stop --timeout 30 0a`,
    ]);
    expect(await run(stopContainers(SOCKET, 'etcd'))).toMatchObject({ exitCode: 0, stdout: '' });
    expect(await run(stopContainers(SOCKET, 'etcd'), { NEVER: 'x' })).toMatchObject({ exitCode: 1 });
    expect(await run(stopContainers(`${SOCKET}.gone`, 'etcd'))).toMatchObject({ exitCode: 1 });
  });

  it('do not run without a client or without a socket', async () => {
    expect(await run(listImages(SOCKET))).toMatchObject({ exitCode: 127 });
    install('crictl', CRICTL);
    for (const command of [listImages, listPods]) expect(await run(command(`${SOCKET}.gone`))).toMatchObject({ exitCode: 1, calls: [] });
  });

  it('remove all pods: a stop that fails is repeated, and a pod that remains does not keep the others', async () => {
    install('crictl', CRICTL);
    const removed = (calls: readonly string[]): readonly string[] => calls.flatMap((call) => / rmp -f (\w)$/.exec(call)?.[1] ?? []);
    const all = await run(removePods(SOCKET, false));
    expect([all.exitCode, removed(all.calls), all.calls.at(-1)]).toEqual([0, [], expect.stringMatching(/ rmp -f a b c$/)]);
    rmSync(join(directory, 'calls'));
    const once = await run(removePods(SOCKET, false), { ONCE: 'b' });
    expect([once.exitCode, removed(once.calls), once.calls.filter((call) => call.endsWith('stopp b')).length]).toEqual([
      0,
      ['a', 'b', 'c'],
      2,
    ]);
    rmSync(join(directory, 'calls'));
    const never = await run(removePods(SOCKET, false), { NEVER: 'b' });
    expect([never.exitCode, never.stderr, removed(never.calls)]).toEqual([1, 'cannot remove these Pods: b', ['a', 'c']]);
    expect(never.calls.filter((call) => call.includes('stopp b'))).toHaveLength(5);
    expect(await run(removePods(SOCKET, true), { NEVER: 'b' })).toMatchObject({ exitCode: 0 });
  });

  /** Files of the kernel's cgroups, by path, each with its processes. */
  function cgroups(files: Readonly<Record<string, string>>): void {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(directory, 'sys/fs/cgroup', path)), { recursive: true });
      writeFileSync(join(directory, 'sys/fs/cgroup', path), text);
    }
  }
  const OTHERS = {
    'system.slice/kubelet.service/cgroup.procs': '7\n',
    'system.slice/docker-1.scope/kubelet.slice/kubelet-kubepods.slice/cgroup.procs': '8\n',
  };
  const CGROUPS: readonly [string, Readonly<Record<string, string>>, string][] = [
    ['no cgroups', {}, '0'],
    ['no pods', { 'cgroup.controllers': 'cpu\n', 'kubepods.slice/cgroup.procs': '', ...OTHERS }, '0'],
    [
      'systemd and cgroup v2',
      {
        'cgroup.controllers': 'cpu\n',
        'kubepods.slice/cgroup.procs': '',
        'kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/cri-containerd-a.scope/cgroup.procs': '11\n12\n',
        'kubepods.slice/kubepods-pod2.slice/cri-containerd-b.scope/deep/er/cgroup.procs': '13\n',
        ...OTHERS,
      },
      '3',
    ],
    ['a custom cgroup root', { 'cgroup.controllers': 'cpu\n', 'kubelet.slice/kubelet-kubepods.slice/a.scope/cgroup.procs': '11\n' }, '1'],
    [
      'cgroup v1 with a hierarchy per controller',
      { 'cpu/kubepods/burstable/pod1/a/cgroup.procs': '11\n12\n', 'memory/kubepods/burstable/pod1/a/cgroup.procs': '11\n12\n' },
      '2',
    ],
  ];
  it.each(CGROUPS)('count processes of pods: %s', async (_, files, count) => {
    cgroups(files);
    expect(await run(countPodProcesses())).toMatchObject({ exitCode: 0, stdout: count });
  });

  it('fail when processes of pods remain that the runtime does not know', async () => {
    install('crictl', CRICTL);
    cgroups({ 'cgroup.controllers': 'cpu\n', 'kubepods.slice/kubepods-pod9.slice/docker-x.scope/cgroup.procs': '11\n' });
    expect(await run(removePods(SOCKET, false))).toMatchObject({ exitCode: 1, stderr: '1 Pod processes are still running' });
    expect(await run(removePods(SOCKET, true))).toMatchObject({ exitCode: 0 });
  });
});

/** The log file that the kubelet writes for a container. */
describe('log of a component without crictl', () => {
  it("contains the kubelet's last lines without their prefixes", async () => {
    const directory = mkdtempSync(join(tmpdir(), 'ka-logs-'));
    try {
      const pods = join(directory, 'kube-system_etcd-cp1_0123', 'etcd');
      mkdirSync(pods, { recursive: true });
      writeFileSync(join(pods, '0.log'), '2030-01-01T00:00:00.1Z stderr F one\n2030-01-01T00:00:00.2Z stdout F two words\n');
      const script = lastLog('/nowhere', 'etcd')[2]?.replaceAll('/var/log/pods', directory).replace('[ -S "$p" ] || exit 1', '');
      const { stdout } = await execa('sh', ['-c', script ?? '', 'sh', '/nowhere', 'etcd'], { env: { PATH: '/usr/bin:/bin' } });
      expect(stdout).toBe('one\ntwo words');
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  });
});
