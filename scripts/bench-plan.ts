// npm run bench:plan: time to plan a fleet when every host has already answered.

import { readFileSync } from 'node:fs';
import { systemClock } from '../src/base/adapters/clock-system.ts';
import { loadFleet } from '../src/fleet/file/load.ts';
import { resolveFleet } from '../src/fleet/file/resolve.ts';
import { savePlan } from '../src/fleet/plan/saved-plan.ts';
import { planHosts } from '../src/fleet/run/plan-hosts.ts';
import { workflowMember } from '../src/fleet/run/workflow-member.ts';
import type { Host } from '../src/host/access/host.ts';
import { queryKey } from '../src/host/facts/query.ts';
import { foldPlans } from '../src/host/plan/fold.ts';
import { DEFAULT_RUN } from '../src/host/run-settings.ts';
import { planWorkflow } from '../src/host/run-workflow.ts';
import { NodeGroups } from '../src/kubeadm/render/node-groups.ts';
import { joinWorkflow } from '../src/kubeadm/workflows/join.ts';
import { readClusterBaseline } from '../src/kubeadm/workflows/node/cluster-baseline.ts';
import { loadCatalogue } from '../src/kubelet/catalogue/load-catalogue.ts';
import { loadTemplates } from '../src/template-files.ts';
import { startBenchLab } from './bench-lab.ts';

const HOSTS = Number(process.env.BENCH_HOSTS ?? 10_000);
/** Five characters like `node2`, which these names replace in certificates: up to 10,000. */
const nameOf = (index: number): string => `e${String(index).padStart(4, '0')}`;
const FLEET = `apiVersion: kubeletadm.dev/v1alpha1
kind: Fleet
groups:
  - name: edge
    kubeletConfiguration: {maxPods: 60}
hosts:
  - {name: '${nameOf(0)[0]}[${nameOf(0).slice(1)}:${nameOf(HOSTS - 1).slice(1)}]', groups: [edge]}
`;
const { lab, services, cluster, close } = await startBenchLab('--set', 'maxPods=50');
const catalogue = await loadCatalogue();
const shared = {
  templates: await loadTemplates(),
  catalogue,
  groups: new NodeGroups(),
  baseline: await readClusterBaseline(cluster, catalogue),
  settings: [],
  patches: [],
  run: { ...DEFAULT_RUN, dryRun: true },
  skipPreflight: false,
  staged: false,
  kubeletHealthCheckMs: 240_000,
  apiServer: async () => ({ server: lab.server, caPem: readFileSync(lab.caFile, 'utf8') }),
  credentials: async () => {
    throw new Error('the plan has no joining host');
  },
  caCertPath: '/etc/kubernetes/pki/ca.crt',
  controlPlane: false,
  tlsBootstrapMs: 300_000,
  takeOver: false,
  waitReadyMs: null,
  trust: null,
  admin: null,
};

// All hosts report the same facts, except for their names, addresses and certificates.
const answers: Record<string, unknown> = {};
const recording = async (): Promise<Host> => {
  const host = await services.connectHost({ address: 'node2', ssh: { configFile: lab.sshConfig } });
  return {
    ...host,
    query: async (queries, options) => {
      const given = await host.query(queries, options);
      for (const [name, question] of Object.entries(queries)) answers[queryKey(question)] = given[name];
      return given;
    },
  };
};
const inName = (text: string, name: string): string => text.replaceAll('node2', name);
/** The certificate with another name of the same length; its signature is not checked. */
const inCertificate = (pem: string, name: string): string =>
  pem.replace(/(-----BEGIN CERTIFICATE-----)([^-]+)/, (_, head: string, body: string) => {
    const der = Buffer.from(body, 'base64').toString('latin1');
    const own = Buffer.from(inName(der, name), 'latin1').toString('base64');
    return `${head}\n${own.replace(/.{64}/g, '$&\n')}\n`;
  });
const addressOf = (index: number): string => `10.9.${index >> 8}.${index & 255}`;
/** The facts of the host with this number, by key; some of them specific to the host. */
const answersOf = (index: number): Readonly<Record<string, unknown>> => {
  const own = Object.create(answers) as Record<string, unknown>;
  for (const [key, answer] of Object.entries(answers)) {
    if (answer === null || typeof answer !== 'object' || Array.isArray(answer)) continue;
    const { path } = JSON.parse(key) as { path?: string };
    const put = (member: string, turn: (text: string) => string): void => {
      const text = (answer as Record<string, unknown>)[member];
      if (typeof text === 'string' && turn(text) !== text) own[key] = { ...answer, [member]: turn(text) };
    };
    put('stdout', (text) => inName(text, nameOf(index)));
    put('content', (text) =>
      path === '/proc/net/fib_trie'
        ? `${text}     |-- ${addressOf(index)}\n        /32 host LOCAL\n`
        : inCertificate(inName(text, nameOf(index)), nameOf(index)),
    );
  }
  return own;
};
const replaying = (name: string): Host => {
  const own = known.get(name) as Readonly<Record<string, unknown>>;
  return {
    name,
    query: async (queries) => {
      for (const key of Object.keys(queries))
        if (own[key] === undefined) throw new Error(`no recorded result of the query ${key.slice(0, 200)}`);
      return own as never;
    },
    perform: () => Promise.reject(new Error('a plan must not change a host')),
    close: async () => undefined,
  };
};

const ports = { signal: services.signal, reporterOf: () => ({ verbosity: 0, report: () => undefined }) };
const rules = { canary: 0, maxUnavailable: 50, maxFail: null, parallel: 50, maxOpen: 200 };
const offline = {
  ...cluster,
  get: async () => null,
  create: async (object: never) => ({ ...(object as object), status: { allowed: true } }) as never,
};
const run = async (count: number, connect: (name: string) => () => Promise<Host>) => {
  // CPU time and not wall time: other load on the host must not count.
  const started = process.cpuUsage();
  const wall = performance.now();
  const lap = (from: NodeJS.CpuUsage): number => (process.cpuUsage(from).user + process.cpuUsage(from).system) / 1e3;
  const { fleet, problems } = resolveFleet(loadFleet(FLEET, 'fleet.yaml'));
  if (problems.length > 0) throw new Error(JSON.stringify(problems));
  const hosts = fleet.hosts.slice(0, count);
  const resolvedMs = lap(started);
  const members = hosts.map(({ name, nodeRegistration, declared, overlays }) => {
    const options = { ...shared, nodeRegistration, declared, overlays: overlays.map(({ document }) => document) };
    return workflowMember({
      name,
      planHost: (context) => planWorkflow(joinWorkflow, context, options, { dryRun: true, skipPhases: [] }),
      connect: connect(name),
      cluster: offline,
      clock: systemClock,
    });
  });
  const { outcomes } = await planHosts(members, rules, ports);
  const bad = outcomes.find(({ status }) => status !== 'pending');
  if (bad !== undefined) throw new Error(`${bad.host} ${bad.status}: ${bad.error?.message}`);
  const plannedMs = lap(started);
  const wallMs = performance.now() - wall;
  const groups = foldPlans(outcomes.flatMap(({ plan }) => (plan === null ? [] : [plan.host]))).length;
  const foldedMs = lap(started);
  const context = {
    fleet: { file: 'fleet.yaml', directory: '/', name: null },
    cluster: fleet.cluster,
    server: lab.server,
    takeOver: false,
    ignorePreflightErrors: [],
  };
  const saved = JSON.stringify(
    savePlan(
      context,
      hosts.map((host, i) => [host, { status: 'pending', plan: outcomes[i]?.plan?.host ?? null, problems: [] }] as const),
      { createdAt: new Date(), validForMs: 1 },
    ),
  );
  return { resolvedMs, plannedMs, wallMs, foldedMs, savedMs: lap(started), groups, megabytes: saved.length / 1e6 };
};

await run(1, () => recording);
const known = new Map(Array.from({ length: HOSTS }, (_, index) => [nameOf(index), answersOf(index)]));
await run(Math.min(HOSTS, 200), (name) => async () => replaying(name));
const { resolvedMs, plannedMs, wallMs, foldedMs, savedMs, groups, megabytes } = await run(HOSTS, (name) => async () => replaying(name));
const text = (ms: number): string => `${(ms / 1000).toFixed(2)} s`;
console.log(
  `${HOSTS} hosts: ${text(plannedMs)} for the plan (${text(wallMs)} on the clock, including ${text(resolvedMs)} for the file), ${text(foldedMs)} for grouping into ${groups} group, ${text(savedMs)} for saving, ${megabytes.toFixed(1)} MB; ${(process.memoryUsage.rss() / 1e6).toFixed(0)} MB RSS`,
);
await close();
process.exit(0);
