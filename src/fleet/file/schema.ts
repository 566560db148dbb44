import * as z from 'zod';
import type { JsonObject } from '../../base/json.ts';
import { decodeStrictBase64 } from '../../base/text/base64.ts';
import { goDurationMs, isTimeLimit } from '../../base/text/go-duration.ts';
import { quoteValue } from '../../codec/document-problems.ts';
import type { IssueParams } from '../../codec/read-document.ts';
import { duration, optional, taint, text, texts } from '../../kubeadm/config/schema-parts.ts';
import { rolloutSettings } from '../../maintenance/gates/rollout-settings.ts';
import { type HostKey, hostKeyType } from '../../ssh/known-hosts.ts';
import { isTemplate } from './scope.ts';

const template = text.meta({ template: true });
const templates = z.array(template);

/** The JSON Schema of a string with a variable, which can replace any scalar. */
export const TEMPLATE = { type: 'string', pattern: '\\{\\{' } as const;

export const FLEET_API_VERSION = 'kubeletadm.dev/v1alpha1';
export const FLEET_KIND = 'Fleet';

/**
 * Schema of a fleet file without `apiVersion` and `kind`. Baseline, groups, hosts and imports share the
 * members of `layerSettings`, the table of settings. Descriptions are part of the JSON Schema (`fleetJsonSchema`), and the
 * metadata of a member is its rule for `mergeLayers`:
 * - `merge`: `last` (the default), `byKey` (members or keys of all layers, the last value of each) or `byName` (items of
 *   all layers, an item replaces those of the same name in lower layers)
 * - `template`: all strings of the value can contain variables
 */

/** A value that zod cannot describe. `jsonSchema` is its part of the JSON Schema. */
function custom<T>(
  jsonSchema: JsonObject,
  read: (written: unknown) => T | null,
  issue: (written: unknown) => IssueParams & { message: string },
) {
  return z
    .unknown()
    .transform((written, context): T => {
      const value = read(written);
      if (value !== null) return value;
      const { message, ...params } = issue(written);
      context.issues.push({ code: 'custom', input: written, message, params });
      return z.NEVER;
    })
    .meta({ jsonSchema });
}

function shown(written: unknown): string {
  if (typeof written === 'string') return quoteValue(written);
  return typeof written === 'object' ? (Array.isArray(written) ? 'a list' : 'an object') : String(written);
}

const port = custom<number | string>(
  { anyOf: [{ type: 'integer', minimum: 1, maximum: 65_535 }, TEMPLATE] },
  (written) =>
    (typeof written === 'number' && Number.isInteger(written) && written >= 1 && written <= 65_535) ||
    (typeof written === 'string' && isTemplate(written))
      ? (written as number | string)
      : null,
  (written) => ({
    code: 'CONFIG_OUT_OF_RANGE',
    message: `${shown(written)} is not a valid port`,
    hint: 'Use a port from 1 to 65535, without quotes',
  }),
);

/** A timer of Node.js with more than 24 days fires immediately. */
const timeLimit = duration.refine((text) => isTimeLimit(text), {
  message: 'must be a duration from 1s to 24h',
  params: { code: 'CONFIG_OUT_OF_RANGE' } satisfies IssueParams,
});

/** A variable's value: one string, number or boolean. */
const variable = custom<string | number | boolean>(
  { type: ['string', 'number', 'boolean'] },
  (written) => (typeof written === 'object' ? null : (written as string | number | boolean)),
  (written) => ({
    code: 'CONFIG_WRONG_TYPE',
    message: `expected a string, a number or a boolean, found ${shown(written)}`,
    hint: 'Use one variable for each value',
  }),
);

const hostKey = custom<HostKey>(
  { type: 'string', pattern: '^\\s*\\S+\\s+[A-Za-z0-9+/]+=*' },
  (written) => (typeof written === 'string' ? readHostKey(written) : null),
  () => ({
    code: 'FLEET_INVALID_HOST_KEY',
    message: 'not a public host key',
    hint: 'Use type and key as in /etc/ssh/ssh_host_ed25519_key.pub on the host: ssh-ed25519 AAAA…',
  }),
);

function readHostKey(written: string): HostKey | null {
  const [type, key] = written.trim().split(/\s+/);
  if (type === undefined || key === undefined) return null;
  const bytes = decodeStrictBase64(key);
  return bytes !== null && hostKeyType(bytes) === type ? { type, blob: bytes.toString('base64') } : null;
}

/** A KubeletConfiguration: any object here, validated by field when the version of the kubelet is known. */
const kubeletConfiguration = custom<object>(
  { $ref: '#/definitions/KubeletConfiguration' },
  (written) => (typeof written === 'object' && written !== null && !Array.isArray(written) ? written : null),
  (written) => ({ code: 'CONFIG_WRONG_TYPE', message: `expected an object, found ${shown(written)}` }),
);

const ssh = z.strictObject({
  user: optional(template.describe('Login user (default: from ssh_config)')),
  port: optional(port.meta({ template: true }).describe('Port of the SSH server (default: from ssh_config, otherwise 22)')),
  identityFiles: optional(
    templates.describe('Private keys to try, in order; relative paths are resolved against the directory of this file'),
  ),
  bastion: optional(
    template.describe(
      'Bastion (jump host): the name of a host in this file, or [user@]address[:port] (several: comma-separated); none: direct connection',
    ),
  ),
  become: optional(z.enum(['auto', 'sudo', 'none']).describe('Privilege escalation on the host')),
  transport: optional(z.enum(['builtin', 'openssh']).describe("SSH client: the built-in one, or the system's ssh")),
  hostKeys: optional(z.array(hostKey).describe('Public host keys; if any is set, no other key is accepted')),
  connectTimeout: optional(timeLimit.describe('Connection timeout, e.g. 10s')),
  commandTimeout: optional(timeLimit.describe('Maximum time for one command on the host (default: 1m0s), e.g. 120s for a slow host')),
});

const fingerprint = custom<string>(
  { type: 'string', pattern: '^\\s*(?:[0-9A-Fa-f]\\s*){40}(?:(?:[0-9A-Fa-f]\\s*){24})?$' },
  (written) => {
    const digits = typeof written === 'string' ? written.replace(/\s/g, '').toUpperCase() : '';
    return /^(?:[0-9A-F]{40}|[0-9A-F]{64})$/.test(digits) ? digits : null;
  },
  () => ({
    code: 'CONFIG_INVALID_VALUE',
    message: 'not a key fingerprint',
    hint: 'Write all 40 or 64 hexadecimal digits, in quotation marks, as gpg --show-keys FILE prints them',
  }),
);

const mode = custom<number>(
  { type: 'string', pattern: '^0?[0-7]{3}$' },
  (written) => (typeof written === 'string' && /^0?[0-7]{3}$/.test(written) ? Number.parseInt(written, 8) : null),
  (written) => ({ code: 'CONFIG_INVALID_VALUE', message: `${shown(written)} is not a file mode`, hint: 'Quote the mode: "0755"' }),
);

const sysctlValue = custom<string>(
  { type: ['string', 'number'] },
  (written) => (typeof written === 'number' || typeof written === 'string' ? String(written) : null),
  (written) => ({ code: 'CONFIG_WRONG_TYPE', message: `expected a number or a string, found ${shown(written)}` }),
);

/** YAML reads `off` as false. */
const swap = custom<'off' | 'keep'>(
  { enum: ['off', 'keep', false] },
  (written) => (written === false || written === 'off' ? 'off' : written === 'keep' ? 'keep' : null),
  (written) => ({ code: 'CONFIG_INVALID_VALUE', message: `${shown(written)} is not a valid value of swap`, hint: 'Use off or keep' }),
);

const hostFile = z.strictObject({
  content: template.describe('Text of the file'),
  mode: optional(mode.describe('Permissions (default: "0644")')),
});

const repository = z.strictObject({
  name: text.describe('Name of the repository, and of its files on the hosts'),
  url: template.describe('URL for the package manager'),
  suite: optional(template.describe('apt: release (default: /, a flat repository)')),
  components: optional(templates.describe('apt: components of the release')),
  key: optional(template.describe('Public key: a path, or an https URL (default: the path used by the openSUSE build service)')),
  keyFingerprints: optional(z.array(fingerprint).describe('Full fingerprints of its keys, required; no other key is accepted')),
});

const packages = z.strictObject({
  version: optional(template.describe('Version of the kubelet: "1.36", "1.36.2" (default: kubernetesVersion)')),
  runtime: optional(template.describe('Package of the container runtime (default: containerd); none: not installed')),
  extra: optional(templates.describe('Additional packages')),
  repository: optional(template.describe('Repository with deb/ and rpm/ (default: https://pkgs.k8s.io/core:/stable:/vMINOR)')),
  key: optional(template.describe('Public key of the repository: a path, or an https URL (default: the key file of the repository)')),
  keyFingerprints: optional(
    z.array(fingerprint).describe('Full fingerprints of its keys (default: the fingerprint of the key of pkgs.k8s.io)'),
  ),
  repositories: optional(z.array(repository).describe('Additional repositories, e.g. of the container runtime')),
});

const installedFile = z.strictObject({
  name: text.describe('Name of the file at its source'),
  sha256: optional(text.describe('Checksum as printed by sha256sum, required')),
  source: optional(template.describe('Local directory or URL (default: source of binaries)')),
  path: optional(template.describe('Path on the host (default: /usr/bin/NAME)')),
  mode: optional(mode.describe('Permissions (default: "0755")')),
  extractTo: optional(template.describe('Directory into which a tar archive is unpacked')),
});

const binaries = z.strictObject({
  source: optional(template.describe('Local directory (relative to this file) or URL of the files')),
  files: optional(z.array(installedFile)),
  units: optional(texts.describe('Units to enable and start after the files are installed')),
});

const secret = z.strictObject({
  env: optional(text.describe('Name of an environment variable')),
  file: optional(text.describe('Path of a file; relative to this file')),
});

const proxy = z.strictObject({
  http: optional(template.describe('URL of the proxy for http, without user and password; none: no proxy')),
  https: optional(template.describe('URL of the proxy for https, without user and password; none: no proxy')),
  noProxy: optional(
    templates.describe('Addresses, subnets and domains without proxy, in addition to the subnets, domains and endpoint of the cluster'),
  ),
  credentials: optional(secret.describe('Source of USER:PASSWORD of the proxy; the credentials are not allowed in this file')),
});

const hookCommand = custom<string | readonly string[]>(
  {
    anyOf: [
      { type: 'string', minLength: 1 },
      { type: 'array', items: { type: 'string' } },
    ],
  },
  (written) => (isHookCommand(written) ? written : null),
  (written) => ({
    code: 'CONFIG_INVALID_VALUE',
    message: `${shown(written)} is not a command`,
    hint: 'Write a list with the program and its arguments, or a string that the shell of the host runs. For no hook, write []',
  }),
);

/** env(1) would take a program with = in its name for a variable. */
function isHookCommand(written: unknown): written is string | readonly string[] {
  const isWord = (word: unknown): word is string => typeof word === 'string' && !word.includes('\0');
  if (!Array.isArray(written)) return isWord(written) && written.trim() !== '';
  const [program] = written as readonly unknown[];
  return written.every(isWord) && (program === undefined || (isWord(program) && program !== '' && !program.includes('=')));
}

const MOST_HOOK_MS = 600_000;
const HOOK_VARIABLE = /^(?!KUBELETADM_)[A-Za-z_][A-Za-z0-9_]*$/;

const hook = z.strictObject({
  command: hookCommand
    .meta({ template: true })
    .describe('Command run as root on the host: a list of the program and its arguments, or a string for sh -c; []: no hook'),
  timeout: optional(
    duration
      .refine((text) => isTimeLimit(text) && goDurationMs(text) <= MOST_HOOK_MS, {
        message: 'must be a duration from 1s to 10m',
        params: { code: 'CONFIG_OUT_OF_RANGE' } satisfies IssueParams,
      })
      .describe('Time limit of the command, from 1s to 10m (default: 2m)'),
  ),
  env: optional(
    z
      .record(z.string().regex(HOOK_VARIABLE, 'must be the name of an environment variable that does not begin with KUBELETADM_'), secret)
      .describe('Environment of the command: each variable is {env: NAME} or {file: PATH}; secret values in this file are refused'),
  ),
});

const hooks = z.strictObject({
  beforeChange: optional(hook.describe('Runs before the first change of the host; a failure refuses the host, and nothing is changed')),
  afterChange: optional(hook.describe('Runs after all changes of the host are verified; a failure fails the host, and the changes stay')),
});

const arg = z.strictObject({ name: text, value: template.default('') });

const byKey = <T extends z.ZodType>(type: T) => optional(type.meta({ merge: 'byKey' }));

/** Settings of a baseline, a group, a host or an import. */
export const layerSettings = {
  variables: byKey(z.record(z.string(), variable).describe('Variables for templates: {{ name }} in any string')),
  address: optional(template.describe('Name, address or ssh_config alias to connect to (default: the name of the host)')),
  role: optional(
    z.enum(['worker', 'control-plane', 'controlPlane', 'bastion']).describe('Role of the host; a bastion is used only as jump host'),
  ),
  ssh: byKey(ssh),
  install: optional(
    z.enum(['packages', 'binaries', 'none']).describe('Installation method of container runtime and kubelet (default: none)'),
  ),
  packages: byKey(packages.describe('Packages of install: packages and their repositories; merged over lower layers')),
  binaries: optional(binaries.describe('Files of install: binaries; replaces the files declared in lower layers')),
  kernelModules: optional(templates.describe('Kernel modules to load, now and at each boot')),
  sysctls: byKey(
    z
      .record(z.string(), sysctlValue.meta({ template: true }))
      .describe('Kernel parameters, now and at each boot; merged over lower layers'),
  ),
  files: byKey(
    z
      .record(z.string(), hostFile)
      .describe('Files of root to write to the host, by absolute path; merged over lower layers. A file that is no longer declared stays'),
  ),
  swap: optional(swap.describe('off: disable swap, now and at each boot')),
  proxy: byKey(proxy.describe('Proxy of the container runtime and the kubelet; merged over lower layers')),
  nodeName: optional(template.describe('Name of the Node (default: the host name)')),
  nodeIP: optional(
    template.describe('Node IP, or a subnet that contains exactly one address of the host (for dual-stack: two values, comma-separated)'),
  ),
  criSocket: optional(template.describe('Socket of the container runtime (default: detected)')),
  resolvConf: optional(template.describe('resolvConf of the kubelet (default: detected)')),
  cgroupDriver: optional(
    z.enum(['systemd', 'cgroupfs']).describe('cgroupDriver of the kubelet (default: the driver of the container runtime)'),
  ),
  labels: byKey(z.record(z.string(), template).describe('Labels of the Node')),
  taints: optional(z.array(taint).meta({ template: true }).describe('Taints of the Node; this list replaces the lists of lower layers')),
  kubeletExtraArgs: optional(
    z.array(arg).meta({ merge: 'byName' }).describe('Flags of the kubelet; a flag replaces flags of the same name in lower layers'),
  ),
  droppedKubeletArgs: optional(
    texts.describe(
      'Names of flags that are not kept when kubeletadm replaces the kubelet unit of the host; this list replaces the lists of lower layers',
    ),
  ),
  ignorePreflightErrors: optional(texts.describe('Preflight checks whose errors are shown as warnings')),
  hooks: byKey(hooks.describe('Commands before and after apply changes a host; each replaces the hook of lower layers')),
  kubeletConfigDir: optional(
    z
      .boolean()
      .describe(
        'true: write the layers of kubeletConfiguration as drop-in files to /etc/kubernetes/kubelet.conf.d (kubelets from 1.30 on)',
      ),
  ),
  kubeletConfiguration: optional(kubeletConfiguration.describe('Fields of KubeletConfiguration, merged over lower layers')),
};

const cluster = z.strictObject({
  kubeconfig: optional(text.describe('Path of an administrator kubeconfig')),
  context: optional(text.describe('Context of the kubeconfig')),
  configuration: optional(text.describe('Path of kubeadm documents (ClusterConfiguration and so on) for a cluster that apply creates')),
  endpoint: optional(
    text.describe(
      'host:port of the API server, to join with a token; for a cluster that apply creates: the endpoint of all control planes',
    ),
  ),
  caCert: optional(text.describe('Path of the CA certificate of the cluster')),
  caCertHashes: optional(texts.describe('Pins of the CA certificate: sha256:…')),
  token: optional(secret.describe('Source of the bootstrap token; the token itself is not allowed in this file')),
});

const group = z.strictObject({ name: text, ...layerSettings });

const host = z.strictObject({
  name: text.describe('Unique name; a range such as edge-[001:200] defines many hosts'),
  groups: optional(texts.describe('Groups, the lowest layer first')),
  ...layerSettings,
});

const inventoryImport = z.strictObject({
  ansibleInventory: optional(
    text.describe('Path of an inventory for ansible-inventory, or of the JSON output of ansible-inventory --list'),
  ),
  sshConfig: optional(text.describe('Path of an ssh_config; its Host names without wildcards become hosts')),
  hosts: optional(texts.describe('Only matching hosts: * and ? as in ssh_config, a leading ! excludes; or names of groups')),
  groups: optional(texts.describe('Additional groups of these hosts')),
  ...layerSettings,
});

export const fleetSchema = z.strictObject({
  name: optional(text.describe('Display name of the fleet')),
  kubernetesVersion: optional(text.describe('Version of the kubelets, e.g. "1.36", for validation before hosts are contacted')),
  sshConfig: optional(
    text.describe('Path of the ssh_config of the hosts, relative to this file (default: ~/.ssh/config); --ssh-config replaces the path'),
  ),
  cluster: optional(cluster),
  baseline: optional(z.strictObject(layerSettings).describe('Settings of all hosts')),
  groups: optional(z.array(group)),
  hosts: optional(z.array(host)),
  imports: optional(z.array(inventoryImport)),
  rollout: optional(rolloutSettings.describe('Gates and maintenance windows between the batches of apply')),
});

/** A fleet file as written, after structural validation. */
export type FleetFile = z.output<typeof fleetSchema>;
/** The common members of all layers. */
export type FleetLayer = Omit<z.output<typeof group>, 'name'>;
