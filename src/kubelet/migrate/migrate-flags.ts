import type { Arg } from '../../base/arg.ts';
import { AppError } from '../../base/errors.ts';
import { type Json, type JsonObject, jsonEqual } from '../../base/json.ts';
import { inlineValue } from '../../codec/inline-value.ts';
import { type Catalogue, formatMinor, type Minor } from '../catalogue/catalogue.ts';
import { effectiveConfiguration } from '../defaults/effective-configuration.ts';
import { valueAt } from '../documents/values.ts';
import { isRelativePath } from '../effective/running-config.ts';
import { checkExtraArgs } from '../flags/check-extra-args.ts';
import { combineWithFile, fieldOfFlag, readFlagValue } from '../flags/flag-value.ts';
import type { FieldEdit, Migrated, MigrateOptions, MigrationStep, Minors } from './migrate-fields.ts';

/**
 * Converts flags into the equivalent fields, removes flags that no longer exist and keeps the rest.
 * @param config the fields of the file, including gates
 * @returns `flags`: the remaining ones, in command-line order
 */
export function migrateFlags(config: JsonObject, options: MigrateOptions): Migrated & { readonly flags: readonly Arg[] } {
  const given = options.flags;
  const edits: FieldEdit[] = [];
  const steps: MigrationStep[] = [];
  const kept = new Set<string>();
  const renamed = new Map<string, string>();
  const values = new Map(given.map(({ name, value }) => [name, value]));
  for (const name of values.keys()) {
    const group = given.filter((flag) => flag.name === name).map(({ value }) => value);
    const strange = notOfOld(name, options);
    if (strange !== null) {
      steps.push(strange);
      continue;
    }
    const moved = moveIntoField(name, group, config, options);
    if (moved !== null) {
      steps.push(moved.step, ...relativePath(moved.edit, options));
      if (moved.edit !== null) edits.push(moved.edit);
      else kept.add(name);
      continue;
    }
    const end = endOf(name, values, options);
    if (end === null) kept.add(name);
    else {
      steps.push(end.step);
      if (end.renamed !== undefined) renamed.set(name, end.renamed);
    }
  }
  const flags = given.flatMap((flag) => {
    const name = renamed.get(flag.name) ?? flag.name;
    return kept.has(flag.name) || renamed.has(flag.name) ? [{ name, value: flag.value }] : [];
  });
  const isReported = ({ what }: MigrationStep): boolean => steps.some((step) => step.what === what && step.did === 'kept');
  const strange = strangeFlags(flags, options).filter((step) => !isReported(step));
  return { flags, edits, steps: [...steps, ...dockerByDefault(values, options), ...strange] };
}

/** A flag unknown to the old kubelet: the minor or the flag is wrong. */
function notOfOld(name: string, { from, catalogue }: Minors): MigrationStep | null {
  if (!catalogue.flags.has(name) || catalogue.flag(name, from) !== null) return null;
  return {
    did: 'removed',
    what: `--${name}`,
    message: `a ${formatMinor(from)} kubelet has no such flag and does not start with it`,
    lossy: true,
  };
}

/** Null: no field in the new minor. */
function moveIntoField(
  name: string,
  texts: readonly string[],
  config: JsonObject,
  { from, to, catalogue }: Minors,
): { readonly step: MigrationStep; readonly edit: FieldEdit | null } | null {
  const flag = catalogue.flag(name, from) ?? catalogue.flag(name, to);
  const path = catalogue.flags.get(name)?.field ?? null;
  const field = path === null ? null : catalogue.field(path, to);
  if (
    flag === null ||
    path === null ||
    field === null ||
    (fieldOfFlag(name, { minor: to, catalogue }) === null && catalogue.flag(name, to) !== null)
  )
    return null;
  const what = `--${name}`;
  const read = readFlagValue(flag, texts, field);
  if ('fault' in read)
    return { step: { did: 'kept', what, message: `no kubelet accepts the value: ${read.fault}`, lossy: true }, edit: null };
  const reported = valueAt(config, path);
  const value = combineWithFile(flag, reported, read.value);
  if (catalogue.flag(name, to) !== null && isReplacedByDefault(path, value, { to, catalogue })) {
    const message = `a ${formatMinor(to)} kubelet replaces ${inlineValue(value)} in the field ${path} by its default`;
    return { step: { did: 'kept', what, message, lossy: false }, edit: null };
  }
  return {
    step: { did: 'moved', what, message: moveText(path, reported, { value, own: read.value }), lossy: false },
    edit: { path: path.split('.'), value },
  };
}

/** Whether a kubelet treats the value in its configuration file as unset, unlike the same value of the flag: `""`, 0. */
function isReplacedByDefault(path: string, value: Json, { to, catalogue }: Pick<Minors, 'to' | 'catalogue'>): boolean {
  if (typeof value === 'object') return false;
  const config = path.split('.').reduceRight<Json>((inner, name) => ({ [name]: inner }), value) as JsonObject;
  const effective = valueAt(effectiveConfiguration(config, { minor: to, catalogue }), path);
  return effective !== undefined && !jsonEqual(effective, value);
}

/** A relative path moved unchanged would refer to another directory. */
function relativePath(edit: FieldEdit | null, { to }: Minors): readonly MigrationStep[] {
  const what = edit?.path.join('.') ?? '';
  if (edit?.value === undefined || !isRelativePath(what, edit.value, to)) return [];
  const message = `${inlineValue(edit.value)} is a relative path. In the flag, the path was relative to the working directory of the kubelet; in the field, it is relative to the directory of the configuration file`;
  return [{ did: 'changes', what, message, lossy: false }];
}

function moveText(path: string, reported: Json | undefined, { value, own }: { readonly value: Json; readonly own: Json }): string {
  const now = `to ${path}: ${inlineValue(own)}`;
  if (reported === undefined || jsonEqual(reported, value)) return now;
  return jsonEqual(own, value)
    ? `${now} instead of ${inlineValue(reported)}: the flag overrode the file`
    : `${now}, which overrides the file`;
}

/** Null: the flag exists in the new minor. */
function endOf(
  name: string,
  values: ReadonlyMap<string, string>,
  { from, to, catalogue }: Minors,
): { readonly step: MigrationStep; readonly renamed?: string } | null {
  const entry = catalogue.flags.get(name);
  if (entry === undefined || catalogue.flag(name, to) !== null) return null;
  const value = values.get(name) ?? '';
  const what = `--${name}`;
  const kubelet = `unknown to a ${formatMinor(to)} kubelet`;
  if (entry.removedIn === null || to < entry.removedIn)
    return { step: { did: 'removed', what, message: `${kubelet}: added in ${formatMinor(entry.since)}`, lossy: true } };
  const { message, harmless, renamed } = REMOVED_FLAGS.get(name) ?? {
    ...UNKNOWN_REMOVAL,
    renamed: undefined,
    harmless: (text: string) => text === catalogue.flag(name, from)?.default,
  };
  const gone = `${kubelet}, removed in ${formatMinor(entry.removedIn)}: ${message}`;
  if (renamed !== undefined) return { step: { did: 'rewritten', what, message: `${gone} to --${renamed}`, lossy: false }, renamed };
  return { step: { did: 'removed', what, message: gone, lossy: !harmless(value, values) } };
}

/** The first minor without dockershim, the previous default runtime. */
const DOCKERSHIM_GONE: Minor = 24;

function dockerByDefault(values: ReadonlyMap<string, string>, { from, to }: Minors): readonly MigrationStep[] {
  if (values.size === 0 || values.has('container-runtime') || from >= DOCKERSHIM_GONE || to < DOCKERSHIM_GONE) return [];
  const message = `without this flag, a ${formatMinor(from)} kubelet runs containers with Docker; a ${formatMinor(to)} kubelet needs a CRI runtime`;
  return [{ did: 'changes', what: '--container-runtime', message, lossy: false }];
}

/** Remaining flags that the new kubelet rejects, and deprecated ones. */
function strangeFlags(flags: readonly Arg[], { to, catalogue }: Minors): readonly MigrationStep[] {
  const refused = refusedFlags(flags, to, catalogue);
  const deprecated = flags.flatMap(({ name }): MigrationStep[] => {
    if (refused.some(({ what }) => what === `--${name}`)) return [];
    if (catalogue.flag(name, to)?.deprecation == null || fieldOfFlag(name, { minor: to, catalogue }) !== null) return [];
    return [
      {
        did: 'kept',
        what: `--${name}`,
        message: 'the flag is deprecated, no field replaces the flag, and a later kubelet will not accept it',
        lossy: false,
      },
    ];
  });
  return [...refused, ...deprecated];
}

function refusedFlags(flags: readonly Arg[], to: Minor, catalogue: Catalogue): readonly MigrationStep[] {
  try {
    const name = flags.findLast((flag) => flag.name === 'hostname-override')?.value ?? '';
    checkExtraArgs({ name, kubeletExtraArgs: flags }, { minor: to, assumed: false, catalogue });
    return [];
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return error.problems.map(({ path = '', message, hint }) => ({
      did: 'kept',
      what: path.replace('kubeletExtraArgs ', '--'),
      message: hint === undefined ? message : `${message}. ${hint}`,
      lossy: true,
    }));
  }
}

/** Replacement of a removed flag. */
interface RemovedFlag {
  /** A clause for display. */
  readonly message: string;
  /** Whether no behaviour is lost for this value. */
  readonly harmless: (value: string, others: ReadonlyMap<string, string>) => boolean;
  /** The replacing flag. */
  readonly renamed?: string;
}

const always = (): boolean => true;
const is =
  (...values: readonly string[]) =>
  (value: string): boolean =>
    values.includes(value);

/** With another runtime, dockershim flags had no effect. */
const withRemoteRuntime = (_: string, others: ReadonlyMap<string, string>): boolean => others.get('container-runtime') === 'remote';
const DOCKERSHIM: RemovedFlag = {
  message: 'used only by dockershim, removed in 1.24: networks and images are configured in the container runtime',
  harmless: withRemoteRuntime,
};
const KLOG: RemovedFlag = { message: 'the kubelet logs only to standard error since 1.26', harmless: always };
const CADVISOR: RemovedFlag = { message: 'had no effect', harmless: always };
/** The default of such a flag had no effect of its own. */
const cadvisorOption = (byDefault: string): RemovedFlag => ({
  message: 'an option of cAdvisor; kubelets from 1.37 on do not start with this flag',
  harmless: is(byDefault),
});

/**
 * Flags that were removed between 1.20 and 1.37 and have no field.
 * @see Kubernetes changelogs 1.21 to 1.37
 */
export const REMOVED_FLAGS: ReadonlyMap<string, RemovedFlag> = new Map<string, RemovedFlag>([
  ['container-runtime', { message: 'all runtimes are remote since 1.24', harmless: is('remote') }],
  ['pod-infra-container-image', { message: 'the sandbox image is configured in the container runtime', harmless: always }],
  [
    'dynamic-config-dir',
    { message: 'dynamic configuration was removed in 1.24: use the content of the ConfigMap as configuration file', harmless: is('') },
  ],
  ['experimental-bootstrap-kubeconfig', { message: 'renamed', harmless: always, renamed: 'bootstrap-kubeconfig' }],
  [
    'cloud-config',
    { message: 'in-tree cloud providers were removed; pass the file to the cloud controller manager instead', harmless: is('') },
  ],
  [
    'azure-container-registry-config',
    { message: 'replaced by a credential provider: --image-credential-provider-config', harmless: is('') },
  ],
  ['keep-terminated-pod-volumes', { message: 'volumes of terminated pods are always unmounted', harmless: is('false') }],
  ['register-schedulable', { message: 'replaced by taints: registerWithTaints', harmless: is('true') }],
  ['master-service-namespace', { message: 'had no effect', harmless: always }],
  ['seccomp-profile-root', { message: 'profiles are read from seccomp in --root-dir', harmless: is('', '/var/lib/kubelet/seccomp') }],
  ['redirect-container-streaming', { message: 'streams always go through the kubelet', harmless: is('false') }],
  ['experimental-check-node-capabilities-before-mount', { message: 'this check of mounts was removed', harmless: is('false') }],
  ['experimental-kernel-memcg-notification', { message: 'renamed', harmless: always, renamed: 'kernel-memcg-notification' }],
  ['chaos-chance', { message: 'only for tests', harmless: always }],
  ['really-crash-for-testing', { message: 'only for tests', harmless: always }],
  ['non-masquerade-cidr', DOCKERSHIM],
  ...[
    'cni-bin-dir',
    'cni-cache-dir',
    'cni-conf-dir',
    'docker-endpoint',
    'experimental-dockershim-root-directory',
    'image-pull-progress-deadline',
    'network-plugin',
    'network-plugin-mtu',
  ].map((name): [string, RemovedFlag] => [name, DOCKERSHIM]),
  ...[
    'docker',
    'docker-env-metadata-whitelist',
    'docker-only',
    'docker-root',
    'docker-tls',
    'docker-tls-ca',
    'docker-tls-cert',
    'docker-tls-key',
    'enable-cadvisor-json-endpoints',
  ].map((name): [string, RemovedFlag] => [name, CADVISOR]),
  ...Object.entries({
    'application-metrics-count-limit': '100',
    'boot-id-file': '/proc/sys/kernel/random/boot_id',
    'container-hints': '/etc/cadvisor/container_hints.json',
    containerd: '/run/containerd/containerd.sock',
    'containerd-namespace': 'k8s.io',
    'enable-load-reader': 'false',
    'event-storage-age-limit': 'default=24h',
    'event-storage-event-limit': 'default=100000',
    'global-housekeeping-interval': '1m0s',
    'log-cadvisor-usage': 'false',
    'machine-id-file': '/etc/machine-id,/var/lib/dbus/machine-id',
    'storage-driver-buffer-duration': '1m0s',
    'storage-driver-db': 'cadvisor',
    'storage-driver-host': 'localhost:8086',
    'storage-driver-password': 'root',
    'storage-driver-secure': 'false',
    'storage-driver-table': 'stats',
    'storage-driver-user': 'root',
  }).map(([name, byDefault]): [string, RemovedFlag] => [name, cadvisorOption(byDefault)]),
  ...[
    'add_dir_header',
    'alsologtostderr',
    'log_backtrace_at',
    'log_dir',
    'log_file',
    'log_file_max_size',
    'logtostderr',
    'one_output',
    'skip_headers',
    'skip_log_headers',
    'stderrthreshold',
  ].map((name): [string, RemovedFlag] => [name, KLOG]),
]);

/** Text for a flag without further information. */
const UNKNOWN_REMOVAL: Pick<RemovedFlag, 'message'> = { message: 'no replacement' };
