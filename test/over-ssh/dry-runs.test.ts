import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import type { Command } from 'commander';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { startLab } from '../../lab/lab.ts';
import { type LabAgents, startLabAgents } from '../../lab/lab-agents.ts';
import type { Lab } from '../../lab/lab-options.ts';
import type { Services } from '../../src/cli/output/services.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { isReview } from '../../src/kube/resources.ts';
import { createServices } from '../../src/wiring.ts';
import { startFirstNode } from '../support/first-node.ts';
import { allHelp } from '../support/help-texts.ts';
import { issuerOfOneKey } from '../support/issuer-of-one-key.ts';
import { joinArguments } from '../support/join-arguments.ts';
import { rolloutWorld } from '../support/rollout-world.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';
import { readTree } from '../support/tree.ts';
import { untilTrue } from '../support/until-true.ts';

const OVERLAY = 'apiVersion: kubeletadm.dev/v1alpha1\nkind: KubeletConfigurationOverlay\n';
const VERSION = ['--kubernetes-version', 'v1.36.1'];

/** Commands with `--dry-run`, the phases of a command as one. */
const COMMANDS = (await allHelp()).flatMap(({ path, command }) => (hasDryRun(command) && !/ phase ./.test(path) ? [path] : []));

function hasDryRun(command: Command | null): boolean {
  return command !== null && (command.options.some(({ long }) => long === '--dry-run') || hasDryRun(command.parent));
}

/** The arguments of a dry run, and what it prints. With `--exit-code`, changes must be pending. */
type DryRun = readonly [line: string, shown: RegExp];

/** `K`, `S`: the options for the cluster and the hosts of the lab; words in capitals: see `wordsOf`. */
const DRY_RUNS: Readonly<Record<string, DryRun>> = {
  init: ['--host node2 VERSION S --exit-code', /\+ \/etc\/kubernetes\/admin\.conf/],
  'init phase': ['certs ca --host node2 VERSION S --exit-code', /\+ \/etc\/kubernetes\/pki\/ca\.key, ca\.crt/],
  join: ['JOIN --exit-code', /\+ \/var\/lib\/kubelet\/config\.yaml/],
  'join phase': ['kubelet-start JOIN --exit-code', /\+ \/var\/lib\/kubelet\/config\.yaml/],
  'cluster adopt': ['--config INIT K --exit-code', /~ ConfigMap kube-system\/kubelet-config/],
  reset: ['--host node4 --delete-node K S --exit-code', /- Node node4/],
  'reset phase': ['cleanup-node --host node4 S --exit-code', /\/var\/lib\/kubelet/],
  undo: ['node4 S --exit-code', /maxPods: 44 → 110/],
  'upgrade apply': ['v1.36.2 --host node3 S --exit-code', /kube-apiserver:v1\.36\.2/],
  'upgrade apply phase': ['upload-config kubeadm v1.36.2 --host node3 S --exit-code', /~ ConfigMap kube-system\/kubeadm-config/],
  'upgrade node': ['--host node4 --set maxPods=45 K S --exit-code', /maxPods: 44 → 45/],
  'upgrade node phase': ['kubelet-config --host node4 --set maxPods=45 K S --exit-code', /maxPods: 44 → 45/],
  'certs renew': ['all --host node3 S --exit-code', /apiserver\.crt/],
  'certs generate-csr': ['--host node2 --cert-dir /pki --kubeconfig-dir /conf S --exit-code', /\+ \/pki\/apiserver\.key/],
  'certs renew-kubelet': ['--host node4 --force K S --exit-code', /\+ \/etc\/kubernetes\/bootstrap-kubelet\.conf/],
  'csr approve': ['--all --trust-node-status K', /approved \(dry run\)/],
  token: ['list K', /^TOKEN/],
  'token create': ['K', /\+ Secret kube-system\/bootstrap-token-/],
  'token list': ['K', /^TOKEN/],
  'token delete': ['TOKEN K', /deleted \(dry run\)/],
  'token generate': ['', /^[a-z0-9]{6}\./],
  'config images pull': ['--host node2 VERSION S --exit-code', /pull image .*kube-apiserver/],
  'dynamic push': ['FILE K --exit-code', /\+ ConfigMap kubeletadm-system\/node-config-/],
  'dynamic assign': ['node1 --file FILE K --exit-code', /\+ ConfigMap kubeletadm-system\/node-config-/],
  'dynamic reset': ['node1 K --exit-code', /Node node1/],
  'dynamic undo': ['node1 K --exit-code', /Node node1/],
  'dynamic gc': ['--older-than 0s K --exit-code', /- ConfigMap kubeletadm-system\/node-config-/],
  'dynamic inspect': ['node1 --repair K S', /othing to/],
  'dynamic enable': ['node4 --program PROGRAM K S --exit-code', /\+ \/etc\/systemd\/system\/kubeletadm-agent\.service/],
  'dynamic disable': ['node1 K S --exit-code', /kubeletadm-agent/],
  'controller install': ['--image IMAGE K --exit-code', /\+ Deployment kubeletadm-system\/kubeletadm-controller/],
  'controller uninstall': ['--crd K --exit-code', /- CustomResourceDefinition/],
  'rollout create': ['edge --all --set maxPods=50 K', /edge created \(dry run\)/],
  'rollout undo': ['edge K', /edge rolled back to revision 1 \(dry run\)/],
  drain: ['node4 K', /every node can be drained/],
  'maintenance start': ['node4 K', /every node can be drained/],
  'fleet trust': ['-f FLEET --ssh-config UNKNOWN', /^node4 .* unknown/m],
  'fleet reset': ['-f FLEET --delete-node K S --exit-code', /- Node node4/],
};

/** Documents with `dryRun: true`. */
const DOCUMENTS: Readonly<Record<string, DryRun>> = {
  init: ['--config DRY --host node2 S --exit-code', /\+ \/etc\/kubernetes\/admin\.conf/],
  join: ['--config DRY --host node2 S --exit-code', /\+ \/var\/lib\/kubelet\/config\.yaml/],
  'cluster adopt': ['--config DRY K --exit-code', /~ ConfigMap kube-system\/kubelet-config/],
  reset: ['--config DRY --host node4 --delete-node K S --exit-code', /- Node node4/],
  'upgrade apply': ['v1.36.2 --config DRY --host node3 S --exit-code', /kube-apiserver:v1\.36\.2/],
  'upgrade node': ['--config DRY --host node4 --set maxPods=45 K S --exit-code', /maxPods: 44 → 45/],
};

/** Commands that only read hosts or the cluster. */
const READING: Readonly<Record<string, DryRun>> = {
  plan: ['-f FLEET S', /1 pending/],
  'fleet drift': ['-f FLEET S', /node4/],
  'fleet status': ['-f FLEET S', /node4/],
  'fleet history': ['-f FLEET S', /node4/],
  status: ['K', /node4/],
  'certs check': ['--host node3 S', /apiserver/],
  'csr list': ['K', /kubelet-serving/],
  'config render': ['--host node4 K S', /kind: KubeletConfiguration/],
  'config from-node': ['node4 K', /maxPods: 44/],
  'node explain': ['node4 S', /maxPods/],
  'dynamic status': ['K', /node1/],
  'dynamic history': ['node1 K', /node-config/],
  'upgrade plan': ['--host node3 S', /v1\.36/],
  'upgrade diff': ['v1.36.2 --host node3 S', /kube-apiserver/],
};

/** Command lines that ask, and their exit codes after the answer no and without a terminal. */
const ASKING: Readonly<Record<string, readonly [line: string, declined: number, refused: number]>> = {
  reset: ['--host node4 S', 1, 2],
  undo: ['node4 S', 1, 2],
  apply: ['-f FLEET S', 1, 2],
  'upgrade apply': ['v1.36.2 --host node3 S', 1, 2],
  'csr approve': ['--all K', 1, 1],
  'dynamic undo': ['node1 K', 1, 2],
  'fleet trust': ['-f FLEET --ssh-config UNKNOWN', 6, 2],
  'fleet reset': ['-f FLEET S', 1, 2],
};
/** As in kubeadm, the checks before the question create a Job, which the cluster deletes. */
const CHECK = /^create Job upgrade-health-check-/;

describe('a command', { timeout: 120_000 }, () => {
  let directory: string;
  let lab: Lab;
  let agents: LabAgents;
  let admin: Cluster;
  let rollouts: Awaited<ReturnType<typeof rolloutWorld>>;
  let writes: string[] = [];
  const path = (name: string): string => join(directory, name);
  const file = (name: string, text: string): string => {
    writeFileSync(path(name), text);
    return path(name);
  };
  const stop = new AbortController();
  const issuer = issuerOfOneKey();
  const env = () => ({ HOME: path('home'), XDG_STATE_HOME: path('state') });
  const done = async (...argv: readonly string[]): Promise<CliResult> => {
    const result = await runCommand(argv, { env: env() });
    expect(result.code, result.stderr + result.stdout).toBe(0);
    return result;
  };

  const wordsOf = (line: string): readonly string[] => {
    const words: Readonly<Record<string, () => readonly string[]>> = {
      K: () => ['--kubeconfig', lab.kubeconfig],
      S: () => ['--ssh-config', lab.sshConfig],
      JOIN: () => joinArguments(lab, 'node2').slice(1),
      VERSION: () => VERSION,
      IMAGE: () => [`registry.example.com/kubeletadm@sha256:${'a'.repeat(64)}`],
      TOKEN: () => [lab.token.reveal().slice(0, 6)],
      FILE: () => [path('overlay.yaml')],
      FLEET: () => [path('fleet.yaml')],
      INIT: () => [path('init.yaml')],
      DRY: () => [path('dry.yaml')],
      UNKNOWN: () => [path('unknown_ssh_config')],
      PROGRAM: () => [path('program.mjs')],
    };
    return line.split(' ').flatMap((word) => words[word]?.() ?? (word === '' ? [] : [word]));
  };

  /** Ports that record each write. */
  const recording = (real: Services, cluster?: Cluster): Partial<Services> => ({
    connectHost: async (target, reporter) => {
      const host = await real.connectHost(target, reporter);
      const perform: typeof host.perform = (operations, options) => {
        if (operations.length > 0) writes.push(`${host.name}: ${operations.map(({ kind }) => kind).join(', ')}`);
        return host.perform(operations, options);
      };
      return { ...host, perform };
    },
    connectCluster: async (target) => recordingCluster(cluster ?? (await real.connectCluster(target))),
    connectEtcd: async (target) => {
      const members = await real.connectEtcd(target);
      const change = (what: string) => async () => void writes.push(`etcd: ${what}`);
      return { ...members, addLearner: change('add') as never, promote: change('promote'), remove: change('remove') };
    },
    writeLocalFile: async (name, ...more) => {
      writes.push(name);
      return real.writeLocalFile(name, ...more);
    },
    openHostKeys: async (options) => {
      const keys = await real.openHostKeys(options);
      const save: typeof keys.save = (target, key) => {
        writes.push(`key of ${target.name}`);
        return keys.save(target, key);
      };
      return { ...keys, save };
    },
    // RSA keys are slow to generate.
    certificateIssuer: async () => issuer,
  });

  const recordingCluster = ({ untilInterrupted: _, forPolls: __, ...cluster }: Cluster): Cluster => ({
    ...cluster,
    create: (object) => {
      const write = `create ${object.kind} ${object.metadata.name}`;
      if (!isReview(object) && !CHECK.test(write)) writes.push(write);
      return cluster.create(object);
    },
    update: (object) => {
      writes.push(`update ${object.kind} ${object.metadata.name}`);
      return cluster.update(object);
    },
    patch: (ref, type, patch, options) => {
      if (options?.dryRun !== true) writes.push(`patch ${ref.kind} ${ref.name}`);
      return cluster.patch(ref, type, patch, options);
    },
    delete: (ref) => {
      writes.push(`delete ${ref.kind} ${ref.name}`);
      return cluster.delete(ref);
    },
    evict: (pod, options) => {
      writes.push(`evict ${pod.name}`);
      return cluster.evict(pod, options);
    },
  });

  /** The files of the operator and of all hosts, without the simulated processes. */
  const filesOf = () => Object.fromEntries(Object.entries(readTree(directory)).filter(([name]) => !name.includes('/proc/')));

  /** @param answer of the operator; null: no terminal */
  const changesNothing = async (command: string, line: string, answer: boolean | null) => {
    const before = filesOf();
    writes = [];
    const own = command === 'rollout undo' ? { ...rollouts.cluster, close: async () => undefined } : undefined;
    const questions: string[] = [];
    const confirm = async (question: string): Promise<boolean | null> => {
      questions.push(question);
      return answer;
    };
    const argv = [...command.split(' '), ...wordsOf(line)];
    const { code, stdout, stderr } = await runCommand(argv, {
      env: env(),
      services: (real) => ({ ...recording(real, own), confirm, canAsk: answer !== null }),
    });
    expect(writes).toEqual([]);
    expect(filesOf()).toEqual(before);
    return { code, stdout, stderr, questions };
  };

  const plans = async (command: string, line: string, shown: RegExp): Promise<void> => {
    const { code, stdout, stderr, questions } = await changesNothing(command, line, false);
    const isPending = line.includes('--exit-code') || command === 'fleet trust';
    expect([code, stdout, questions], stderr).toEqual([isPending ? 6 : 0, expect.stringMatching(shown), []]);
  };

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'ka-dry-'));
    mkdirSync(path('home'));
    lab = await startLab({ directory: path('lab'), hosts: 4 });
    const [, , node3] = lab.hosts;
    const nowhere = new Writable({ write: (_chunk, _encoding, ended) => ended() });
    const streams = { stdin: Readable.from([]), stdout: nowhere, stderr: nowhere };
    const services = createServices({ env: { PATH: process.env.PATH ?? '' }, ...streams, signal: stop.signal });
    agents = await startLabAgents(services, { lab, names: ['node1'], trialMs: 200, failed: () => undefined });
    admin = kubeCluster({ kubeconfig: { text: readFileSync(lab.kubeconfig, 'utf8'), file: lab.kubeconfig } });
    await startFirstNode(lab, '--set', 'serverTLSBootstrap=true');
    await done(...joinArguments(lab, 'node4'));
    await done('upgrade', 'node', '--set', 'maxPods=44', '--host', 'node4', ...wordsOf('K S'));
    await done('init', ...VERSION, '--control-plane-endpoint', `${node3?.loopback}:6443`, '--host', 'node3', ...wordsOf('S'));
    await agents.waitForReports();
    file('overlay.yaml', `${OVERLAY}maxPods: 71\n`);
    await done('dynamic', 'push', path('overlay.yaml'), ...wordsOf('K'));
    file('overlay.yaml', `${OVERLAY}maxPods: 72\n`);
    await done('dynamic', 'assign', 'node1', '--file', path('overlay.yaml'), '--wait', 'good', '--min-ready', '0s', ...wordsOf('K'));
    file('overlay.yaml', `${OVERLAY}maxPods: 73\n`);
    await admin.create(parse((await done('controller', 'crd')).stdout));
    file('program.mjs', "#!/usr/bin/env node\nconsole.log('1.2.3');\n");
    const header = `apiVersion: kubeletadm.dev/v1alpha1\nkind: Fleet\ncluster: {kubeconfig: ${lab.kubeconfig}}\n`;
    file('fleet.yaml', `${header}hosts: [{name: node4}]\n`);
    file('unknown_ssh_config', readFileSync(lab.sshConfig, 'utf8').replaceAll(/(UserKnownHostsFile) .*/g, `$1 ${path('known_hosts')}`));
    const kubeadm = 'apiVersion: kubeadm.k8s.io/v1beta4';
    const kubelet = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 99\n';
    const [discovery, token] = [`apiServerEndpoint: ${lab.server.replace('https://', '')}`, lab.token.reveal()];
    file(
      'init.yaml',
      `${kubeadm}\nkind: ClusterConfiguration\n${VERSION[0]}\n---\n${kubelet}`.replace(
        '--kubernetes-version',
        'kubernetesVersion: v1.36.1',
      ),
    );
    file(
      'dry.yaml',
      `${readFileSync(path('init.yaml'), 'utf8')}---
${kubeadm}\nkind: InitConfiguration\ndryRun: true\n---
${kubeadm}\nkind: JoinConfiguration\ndryRun: true\ndiscovery: {bootstrapToken: {${discovery}, token: ${token}, unsafeSkipCAVerification: true}}\n---
${kubeadm}\nkind: ResetConfiguration\ndryRun: true\n---
${kubeadm}\nkind: UpgradeConfiguration\napply: {dryRun: true}\nnode: {dryRun: true}\n`,
    );
    rollouts = await rolloutWorld(['n1']);
    const controller = rollouts.controller();
    for (const maxPods of [40, 50]) {
      const spec = { payload: { overlay: { maxPods } } };
      await (maxPods === 40 ? rollouts.create('edge', { nodeSelector: {}, ...spec }) : rollouts.patch('edge', spec));
      await controller.run(60);
    }
    const csr = { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest' };
    await untilTrue(async () => JSON.stringify((await admin.list(csr)).items).includes('kubelet-serving'));
  }, 240_000);
  afterAll(async () => {
    await admin?.close();
    await agents?.close();
    await lab?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  it('is in the tables of this file if it has --dry-run', () => {
    expect(Object.keys(DRY_RUNS).toSorted()).toEqual(COMMANDS.toSorted());
  });

  it.each(Object.entries(DRY_RUNS))('%s --dry-run prints its plan, asks nothing and changes nothing', (command, [line, shown]) =>
    plans(command, `${line} --dry-run`, shown),
  );

  it.each(Object.entries(DOCUMENTS))(
    '%s with dryRun in its document prints its plan, asks nothing and changes nothing',
    (command, [line, shown]) => plans(command, line, shown),
  );

  it.each(Object.entries(READING))('%s changes nothing', async (command, [line, shown]) => {
    const { code, stdout, stderr, questions } = await changesNothing(command, line, false);
    expect([code, stdout, questions], stderr).toEqual([0, expect.stringMatching(shown), []]);
  });

  it.each(Object.entries(ASKING))(
    '%s asks before it changes anything, and refuses without a terminal',
    async (command, [line, ...codes]) => {
      const declined = await changesNothing(command, line, false);
      expect(declined.questions, declined.stderr).toEqual([expect.stringContaining('[y/N]')]);
      const refused = await changesNothing(command, line, null);
      expect(refused.stderr).toMatch(/not a terminal|CSR_NOT_CONFIRMED/);
      expect([declined.code, refused.code]).toEqual(codes);
    },
  );

  it('is caught when it writes to the cluster or a host', async () => {
    await expect(changesNothing('token create', 'K', null)).rejects.toThrow();
    expect(writes).toEqual([expect.stringMatching(/^create Secret bootstrap-token-/)]);
    await expect(changesNothing('init phase', 'certs ca --host node2 VERSION S', null)).rejects.toThrow();
    expect(writes).toContainEqual(expect.stringMatching(/^node2: .*write-file/));
  });
});
