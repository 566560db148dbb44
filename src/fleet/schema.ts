import * as z from 'zod';
import { decodeStrictBase64 } from '../base/text/base64.ts';
import { isTimeLimit } from '../base/text/go-duration.ts';
import { quoteValue } from '../codec/document-problems.ts';
import type { IssueParams } from '../codec/read-document.ts';
import { duration, optional, taint, text, texts } from '../kubeadm/config/schema-parts.ts';
import { type HostKey, hostKeyType } from '../ssh/known-hosts.ts';
import { isTemplate } from './template.ts';

/** apiVersion and kind of a fleet file. */
export const FLEET_API_VERSION = 'kubeletadm.dev/v1alpha1';
export const FLEET_KIND = 'Fleet';

/**
 * What a fleet file may hold, without `apiVersion` and `kind`. Baseline, groups, hosts and imports share the members of `layer`. Descriptions
 * go into the JSON Schema (`fleetJsonSchema`).
 */

function custom<T>(name: string, read: (written: unknown) => T | null, issue: (written: unknown) => IssueParams & { message: string }) {
  return z
    .unknown()
    .transform((written, context): T => {
      const value = read(written);
      if (value !== null) return value;
      const { message, ...params } = issue(written);
      context.issues.push({ code: 'custom', input: written, message, params });
      return z.NEVER;
    })
    .meta({ part: name });
}

function shown(written: unknown): string {
  if (typeof written === 'string') return quoteValue(written);
  return typeof written === 'object' ? (Array.isArray(written) ? 'a list' : 'a mapping') : String(written);
}

/** A port, or a template that gives one. */
const port = custom<number | string>(
  'port',
  (written) =>
    (typeof written === 'number' && Number.isInteger(written) && written >= 1 && written <= 65_535) ||
    (typeof written === 'string' && isTemplate(written))
      ? (written as number | string)
      : null,
  (written) => ({
    code: 'CONFIG_OUT_OF_RANGE',
    message: `${shown(written)} is not a port`,
    hint: 'Ports go from 1 to 65535, without quotes',
  }),
);

/** A timer of Node.js that is set to more than 24 days fires at once. */
const timeLimit = duration.refine((text) => isTimeLimit(text), {
  message: 'a time limit is a duration from 1s to 24h',
  params: { code: 'CONFIG_OUT_OF_RANGE' } satisfies IssueParams,
});

/** A variable's value: one text, number or boolean. */
const variable = custom<string | number | boolean>(
  'variable',
  (written) => (typeof written === 'object' ? null : (written as string | number | boolean)),
  (written) => ({
    code: 'CONFIG_WRONG_TYPE',
    message: `expected a text, a number or true or false, found ${shown(written)}`,
    hint: 'Write one variable for each value',
  }),
);

const hostKey = custom<HostKey>(
  'hostKey',
  (written) => (typeof written === 'string' ? readHostKey(written) : null),
  () => ({
    code: 'FLEET_INVALID_HOST_KEY',
    message: 'this is not a public host key',
    hint: 'Write type and key as in /etc/ssh/ssh_host_ed25519_key.pub on the host: ssh-ed25519 AAAA…',
  }),
);

function readHostKey(written: string): HostKey | null {
  const [type, key] = written.trim().split(/\s+/);
  if (type === undefined || key === undefined) return null;
  const bytes = decodeStrictBase64(key);
  return bytes !== null && hostKeyType(bytes) === type ? { type, blob: bytes.toString('base64') } : null;
}

/** A KubeletConfiguration: any mapping here, judged field by field when the version of the kubelet is known. */
const kubeletConfiguration = custom<object>(
  'kubeletConfiguration',
  (written) => (typeof written === 'object' && written !== null && !Array.isArray(written) ? written : null),
  (written) => ({ code: 'CONFIG_WRONG_TYPE', message: `expected a mapping, found ${shown(written)}` }),
);

const ssh = z.strictObject({
  user: optional(text.describe('Whom to log in as (default: as ssh_config says)')),
  port: optional(port.describe('Port of the SSH server (default: as ssh_config says, else 22)')),
  identityFiles: optional(texts.describe('Private keys to try, in order; relative paths count from this file')),
  bastion: optional(
    text.describe('Host to go through: the name of a host here, [user@]address[:port], several with commas; none: directly'),
  ),
  become: optional(z.enum(['auto', 'sudo', 'none']).describe('How to be root on the host')),
  transport: optional(z.enum(['builtin', 'openssh']).describe("Who speaks SSH: the built-in client, or the system's ssh")),
  hostKeys: optional(z.array(hostKey).describe('Public host keys; when there are any, no other key is accepted')),
  connectTimeout: optional(timeLimit.describe('How long to try to reach the host, e.g. 10s')),
  commandTimeout: optional(timeLimit.describe('Maximum time for one command on the host (default: 1m0s), e.g. 120s for a slow host')),
});

const fingerprint = custom<string>(
  'fingerprint',
  (written) => {
    const digits = typeof written === 'string' ? written.replace(/\s/g, '').toUpperCase() : '';
    return /^(?:[0-9A-F]{40}|[0-9A-F]{64})$/.test(digits) ? digits : null;
  },
  () => ({
    code: 'CONFIG_INVALID_VALUE',
    message: 'this is not the fingerprint of a key',
    hint: 'Write all 40 hexadecimal digits that gpg --show-keys FILE prints, in quotes',
  }),
);

const mode = custom<number>(
  'mode',
  (written) => (typeof written === 'string' && /^0?[0-7]{3}$/.test(written) ? Number.parseInt(written, 8) : null),
  (written) => ({ code: 'CONFIG_INVALID_VALUE', message: `${shown(written)} is not a mode`, hint: 'Write it in quotes: "0755"' }),
);

const sysctlValue = custom<string>(
  'sysctlValue',
  (written) => (typeof written === 'number' || (typeof written === 'string' && !/[\n\0]/.test(written)) ? String(written) : null),
  (written) => ({ code: 'CONFIG_WRONG_TYPE', message: `expected a number or a text, found ${shown(written)}` }),
);

/** YAML has `off` for false. */
const swap = custom<'off' | 'keep'>(
  'swap',
  (written) => (written === false || written === 'off' ? 'off' : written === 'keep' ? 'keep' : null),
  (written) => ({ code: 'CONFIG_INVALID_VALUE', message: `${shown(written)} is neither off nor keep` }),
);

const repository = z.strictObject({
  name: text.describe('Of its files on the hosts'),
  url: text.describe('Where the package manager finds it'),
  suite: optional(text.describe('With apt: the release (default: /, a flat repository)')),
  components: optional(texts.describe('With apt: the components of the release')),
  key: optional(text.describe('Public key: a path, or an https URL (default: where the build service has it)')),
  keyFingerprints: optional(z.array(fingerprint).describe('Whole fingerprints of its keys; no other key is taken; needed')),
});

const packages = z.strictObject({
  version: optional(text.describe('Of the kubelet: "1.36", "1.36.2" (default: kubernetesVersion)')),
  runtime: optional(text.describe('Package of the container runtime (default: containerd); none: it is not installed')),
  extra: optional(texts.describe('Other packages')),
  repository: optional(text.describe('In place of https://pkgs.k8s.io/core:/stable:/vMINOR: where deb/ and rpm/ are')),
  key: optional(text.describe('Its public key: a path, or an https URL (default: where the repository has it)')),
  keyFingerprints: optional(z.array(fingerprint).describe('Whole fingerprints of its keys (default: the one of pkgs.k8s.io)')),
  repositories: optional(z.array(repository).describe('Others, e.g. of the container runtime')),
});

const installedFile = z.strictObject({
  name: text.describe('Of the file at its source'),
  sha256: optional(text.describe('As sha256sum prints it; needed')),
  source: optional(text.describe('Directory of this machine, or URL, in place of the one for all')),
  path: optional(text.describe('Where it goes (default: /usr/bin/NAME)')),
  mode: optional(mode.describe('Permissions (default: "0755")')),
  extractTo: optional(text.describe('It is a tar archive, to be unpacked in this directory')),
});

const binaries = z.strictObject({
  source: optional(text.describe('Directory of this machine (relative ones count from this file), or URL, that has the files')),
  files: optional(z.array(installedFile)),
  units: optional(texts.describe('Units that are enabled and started when the files are there')),
});

const arg = z.strictObject({ name: text, value: text.default('') });

/** What a baseline, a group, a host or an import says of its hosts. */
const layer = {
  variables: optional(z.record(z.string(), variable).describe('Variables for templates: {{ name }} in any text')),
  address: optional(text.describe('Name, address or ssh_config alias to connect to (default: the name of the host)')),
  role: optional(z.enum(['worker', 'control-plane', 'controlPlane', 'bastion']).describe('A bastion is only gone through')),
  ssh: optional(ssh),
  install: optional(
    z.enum(['packages', 'binaries', 'none']).describe('How container runtime and kubelet get onto the host (default: none)'),
  ),
  packages: optional(packages.describe('What install: packages installs, and from where; merged over the layer below')),
  binaries: optional(binaries.describe('What install: binaries installs; replaces that of the layer below')),
  kernelModules: optional(texts.describe('Kernel modules to be loaded, now and at each boot')),
  sysctls: optional(z.record(z.string(), sysctlValue).describe('Kernel parameters, now and at each boot; merged over the layer below')),
  swap: optional(swap.describe('off: no swap, now and after a boot')),
  nodeName: optional(text.describe('Name of the Node (default: the host name)')),
  nodeIP: optional(text.describe('IP address of the node, or a subnet it has one address in; of both families with a comma between')),
  criSocket: optional(text.describe('Socket of the container runtime (default: detected)')),
  resolvConf: optional(text.describe('resolvConf of the kubelet (default: detected)')),
  cgroupDriver: optional(z.enum(['systemd', 'cgroupfs']).describe('cgroupDriver of the kubelet (default: asked of the runtime)')),
  labels: optional(z.record(z.string(), text).describe('Labels the node registers with')),
  taints: optional(z.array(taint).describe('Taints the node registers with; a list replaces the one of the layer below')),
  kubeletExtraArgs: optional(z.array(arg).describe('Flags of the kubelet; those of a layer replace those of the same name below')),
  ignorePreflightErrors: optional(texts.describe('Preflight checks whose errors are warnings')),
  kubeletConfiguration: optional(kubeletConfiguration.describe('Fields of KubeletConfiguration, merged over the layer below')),
};

const secret = z.strictObject({
  env: optional(text.describe('Name of an environment variable')),
  file: optional(text.describe('Path of a file; relative ones count from this file')),
});

const cluster = z.strictObject({
  kubeconfig: optional(text.describe('Path of a kubeconfig of an administrator')),
  context: optional(text.describe('Context of the kubeconfig')),
  configuration: optional(text.describe('Path of kubeadm documents (ClusterConfiguration and so on) for a cluster that apply brings up')),
  endpoint: optional(
    text.describe('host:port of the API server, to join by token; of a cluster that apply brings up: of all control planes'),
  ),
  caCert: optional(text.describe('Path of the CA certificate of the cluster')),
  caCertHashes: optional(texts.describe('Pins of the CA certificate: sha256:…')),
  token: optional(secret.describe('Where the bootstrap token is found; the token itself does not belong in this file')),
});

const group = z.strictObject({ name: text, ...layer });

const host = z.strictObject({
  name: text.describe('Unique; a range such as edge-[001:200] stands for many hosts'),
  groups: optional(texts.describe('Groups, the lowest layer first')),
  ...layer,
});

const inventoryImport = z.strictObject({
  ansibleInventory: optional(text.describe('Path of an inventory that ansible-inventory reads, or of the JSON it prints with --list')),
  sshConfig: optional(text.describe('Path of an ssh_config; its Host names without wildcards are hosts')),
  hosts: optional(texts.describe('Only hosts that match: * and ? as in ssh_config, ! in front to leave out; or names of groups')),
  groups: optional(texts.describe('Groups these hosts are in besides')),
  ...layer,
});

export const fleetSchema = z.strictObject({
  name: optional(text.describe('Of the fleet, for people')),
  kubernetesVersion: optional(text.describe('Of the kubelets, e.g. "1.36": what the file is judged by before a host is asked')),
  cluster: optional(cluster),
  baseline: optional(z.strictObject(layer).describe('What holds for all hosts')),
  groups: optional(z.array(group)),
  hosts: optional(z.array(host)),
  imports: optional(z.array(inventoryImport)),
});

/** A fleet file as written, structure checked. */
export type FleetFile = z.output<typeof fleetSchema>;
export type FleetHost = z.output<typeof host>;
export type FleetGroup = z.output<typeof group>;
export type FleetImport = z.output<typeof inventoryImport>;
/** What all layers have in common. */
export type FleetLayer = Omit<FleetGroup, 'name'>;
