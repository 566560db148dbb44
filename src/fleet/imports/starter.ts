import { parseIp } from '../../base/text/ip.ts';
import type { ImportedHost, ImportedInventory } from '../file/entries.ts';
import type { HostRole } from '../file/model.ts';
import { FLEET_API_VERSION, FLEET_KIND } from '../file/schema.ts';
import { type DeclaredField, type DeclaredSettings, declaredSettings } from './ansible/kubespray.ts';
import { isGroupOfAllNodes, roleOfGroup } from './group-roles.ts';

export interface StarterImport {
  readonly source: 'ansibleInventory' | 'sshConfig';
  readonly path: string;
  readonly inventory: ImportedInventory;
}

/** A machine that the starter file lists with its settings. */
export interface StarterMachine {
  readonly name: string;
  readonly role: HostRole | 'bastion';
  readonly address: string;
  readonly user: string | null;
  /** Null: 22. */
  readonly port: number | null;
  readonly identityFiles: readonly string[];
  /** The name of a machine with the role `bastion`. */
  readonly bastion?: string | undefined;
}

const MAX_GROUPS = 30;

interface StarterSource {
  readonly imports?: readonly StarterImport[];
  /** Replaces the example hosts. Key files as they are written. */
  readonly machines?: readonly StarterMachine[];
  /** The kubeconfig in force; null or absent: none, or several files. */
  readonly kubeconfig?: string | null | undefined;
  /** The ssh_config that the hosts are imported from, unless it is that of the user. */
  readonly sshConfig?: string | undefined;
  /** For all hosts: a subnet, or a template. */
  readonly nodeIP?: string | undefined;
}

/**
 * Renders a starter fleet file: all required settings, and optional ones as comments. The file is valid as
 * is. For hosts of imported inventories it declares only the inventory's settings, because the hosts may
 * already be nodes of a cluster.
 * @param kubernetesVersion `1.36`; for an import the declared version
 */
export function starterFile(kubernetesVersion: string, source: StarterSource = {}): string {
  const { imports = [], machines = [] } = source;
  const hosts = machines.length > 0 ? machinesText(machines) : imports.length === 0 ? HOSTS : '';
  const parts = [header(kubernetesVersion, source), groups(source), hosts, imports.length === 0 ? '' : importsText(imports)];
  return parts.filter((part) => part !== '').join('\n');
}

/**
 * The settings that an Ansible inventory declares for its nodes with the variables of kubespray.
 * @returns null: not an Ansible import
 */
export function importedSettings({ source, inventory }: StarterImport): DeclaredSettings | null {
  if (source !== 'ansibleInventory') return null;
  const group = nodeGroupOf(inventory);
  const allowsTemplates = group !== undefined && listedGroups([{ inventory }]).slice(0, MAX_GROUPS).includes(group);
  return declaredSettings(nodesOf(inventory), { allowsTemplates });
}

/** The hosts in a group of all nodes if one exists, and control planes; otherwise all hosts except bastions. */
function nodesOf(inventory: ImportedInventory): readonly ImportedHost[] {
  const group = nodeGroupOf(inventory);
  const has = ({ groups: own }: ImportedHost, role: string): boolean => own.some((name) => roleOfGroup(name, inventory) === role);
  return inventory.hosts.filter((host) =>
    group === undefined ? !has(host, 'bastion') : host.groups.includes(group) || has(host, 'control-plane'),
  );
}

/** `kubelet_custom_flags, kubelet_max_pods (declared for 1 of 2 nodes)`. */
export function ignoredSettingsText(settings: DeclaredSettings | null): string {
  const { notTaken = [] } = settings ?? {};
  return notTaken.map(({ variable, reason }) => (reason === null ? variable : `${variable} (${reason})`)).join(', ');
}

/** Entries of the same object are grouped under its name. */
function fieldLines(fields: readonly DeclaredField[], indent: string): string {
  const names = [...new Set(fields.map(({ path: [name] }) => name))];
  const line = (name: string, { value, variable }: DeclaredField): string =>
    `${name}: ${typeof value === 'string' ? JSON.stringify(value) : value}    # ${variable}\n`;
  return names
    .map((name) => {
      const own = fields.filter(({ path }) => path[0] === name);
      const entries = own.flatMap((field) => (field.path[1] === undefined ? [] : [`${indent}  ${line(field.path[1], field)}`]));
      if (entries.length > 0) return `${indent}${name}:\n${entries.join('')}`;
      return own.map((field) => `${indent}${line(name, field)}`).join('');
    })
    .join('');
}

/** Fields of KubeletConfiguration in the baseline: for an import, the declared ones. */
function baselineFields({ imports = [] }: StarterSource): string {
  const settings = imports.flatMap((one) => importedSettings(one) ?? []);
  const notTaken = settings.map(ignoredSettingsText).filter(Boolean);
  const fields = settings.flatMap((one) => one.fields.filter(({ isTemplate }) => !isTemplate));
  return [
    fields.length === 0
      ? '  # Any field of KubeletConfiguration; none is declared, so that the nodes keep the configuration of the cluster:\n  # kubeletConfiguration:\n  #   clusterDomain: "{{ domain }}"\n  #   maxPods: 110\n'
      : `  # From the inventory. Any field of KubeletConfiguration may be added:\n  kubeletConfiguration:\n${fieldLines(fields, '    ')}`,
    ...notTaken.map((names) => `  # Not imported from the inventory:\n${commentLines(names.split(', '))}`),
  ].join('');
}

/** Names as comment lines of at most about 100 characters. */
function commentLines(names: readonly string[]): string {
  const lines: string[] = [];
  for (const name of names) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + name.length < 90) lines[lines.length - 1] = `${last}, ${name}`;
    else lines.push(name);
  }
  return lines.map((line) => `  #   ${line}\n`).join('');
}

function versionLines(kubernetesVersion: string, { imports = [] }: StarterSource): string {
  const versions = [...new Set(imports.flatMap((one) => importedSettings(one)?.kubernetesVersion ?? []))];
  const [version = kubernetesVersion] = versions;
  return versions.length === 1 ? `kubernetesVersion: "${version}"    # kube_version` : `# kubernetesVersion: "${kubernetesVersion}"`;
}

function header(kubernetesVersion: string, source: StarterSource): string {
  const { machines = [], nodeIP, kubeconfig, sshConfig } = source;
  const user = userOf(machines);
  const inSsh = user === null ? '  #   ' : '    # ';
  return `# yaml-language-server: $schema=fleet.schema.json
# The line above is for editors; a newer version prints its schema with: kubeletadm fleet schema > fleet.schema.json
apiVersion: ${FLEET_API_VERSION}
kind: ${FLEET_KIND}

# Version of the kubelets, for validation before hosts are contacted.
${versionLines(kubernetesVersion, source)}

# Access to the cluster. Paths are relative to this file. Do not store secrets in this file.
cluster:
  ${machines.length > 0 ? 'kubeconfig: admin.conf' : kubeconfig == null ? '# kubeconfig: ~/.kube/config    # default: KUBECONFIG, then this file' : `kubeconfig: ${quoted(kubeconfig)}`}
  # context: production
  # Without a kubeconfig nodes join by token:
  # endpoint: api.example.com:6443
  # caCertHashes: ["sha256:0123..."]
  # token: {env: KUBELETADM_TOKEN}      # or {file: PATH}

# Configuration of the SSH client, which provides omitted SSH settings; --ssh-config replaces the path.
${sshConfig === undefined ? '# sshConfig: ssh_config            # default: ~/.ssh/config' : `sshConfig: ${quoted(sshConfig)}`}

# Settings of all hosts. Groups and hosts have the same fields and override them.
baseline:
  # Variables fill templates, {{ name }}, in any text of the file. Every host has name; one of a range also index (001) and number (1).
  # variables:
  #   domain: cluster.local
${user === null ? '  # ssh:\n  #   user: root' : `  ssh:\n    user: ${quoted(user)}`}
${inSsh}port: 22
${inSsh}identityFiles: [~/.ssh/id_ed25519]
${inSsh}bastion: jump.example.com         # or the name of a host with role: bastion
${inSsh}become: auto                      # sudo where the user is not root
${inSsh}hostKeys: ["ssh-ed25519 AAAA..."] # default: known_hosts; kubeletadm fleet trust records keys
${nodeIP === undefined ? '  # nodeIP: 10.0.0.{{ number }}             # or a subnet that contains one address of the host' : `  nodeIP: ${nodeIP}`}
  # criSocket, resolvConf and cgroupDriver are detected where they are not set.
${baselineFields(source)}`;
}

/** The common login user of all hosts; null: the users differ. */
function userOf(machines: readonly StarterMachine[]): string | null {
  const [first] = machines;
  return first !== undefined && machines.every(({ user }) => user === first.user) ? first.user : null;
}

/** Groups that settings are written for come first, because long lists are cut. */
function listedGroups(imports: readonly Pick<StarterImport, 'inventory'>[]): readonly string[] {
  const names = [...new Set(imports.flatMap(({ inventory }) => inventory.groups))].filter(
    (name) => /^[A-Za-z0-9_][\w.-]*$/.test(name) && name !== 'all',
  );
  const isNeeded = (name: string): boolean =>
    roleIn(name, imports) !== null || imports.some(({ inventory }) => nodeGroupOf(inventory) === name);
  return names.length <= MAX_GROUPS ? names : names.toSorted((a, b) => Number(isNeeded(b)) - Number(isNeeded(a)));
}

function roleIn(group: string, imports: readonly Pick<StarterImport, 'inventory'>[]): string | null {
  for (const { inventory } of imports) {
    const role = inventory.groups.includes(group) ? roleOfGroup(group, inventory) : null;
    if (role !== null) return role;
  }
  return null;
}

function groups({ imports = [], machines = [] }: StarterSource): string {
  const found = listedGroups(imports);
  const lines = ['# A host may be in several groups; later groups in its list win.'];
  if (found.length === 0)
    return imports.length === 0 && machines.length === 0
      ? `${lines.join('\n')}\n${EDGE_GROUP}`
      : `${lines.join('\n')}\n# groups:\n#   - name: edge\n`;
  lines.push('# Groups of the inventory; settings here apply to all their hosts.', 'groups:');
  for (const name of found.slice(0, MAX_GROUPS)) {
    lines.push(`  - name: ${quoted(name)}`);
    const role = roleIn(name, imports);
    if (role !== null) lines.push(`    role: ${role}`);
    if (imports.some(({ inventory }) => nodeGroupOf(inventory) === name && haveIp(inventory, name)))
      lines.push('    nodeIP: "{{ ip }}"    # from the inventory');
    const templates = imports
      .filter(({ inventory }) => nodeGroupOf(inventory) === name)
      .flatMap((one) => importedSettings(one)?.fields.filter(({ isTemplate }) => isTemplate) ?? []);
    if (templates.length > 0) lines.push('    kubeletConfiguration:', fieldLines(templates, '      ').trimEnd());
  }
  if (found.length > MAX_GROUPS) lines.push(`  # and ${found.length - MAX_GROUPS} more, which may be omitted`);
  return `${lines.join('\n')}\n`;
}

function nodeGroupOf({ groups: names, hosts }: ImportedInventory): string | undefined {
  return names.find((name) => isGroupOfAllNodes(name) && hosts.some(({ groups: own }) => own.includes(name)));
}

/** kubespray's `ip` is the address for Kubernetes on a host. */
function haveIp({ hosts }: ImportedInventory, group: string): boolean {
  const ips = hosts.filter(({ groups: own }) => own.includes(group)).map(({ written }) => written.variables?.ip);
  return ips.every((ip) => typeof ip === 'string' && parseIp(ip) !== null);
}

const EDGE_GROUP = `groups:
  - name: edge
    # labels:
    #   node.kubernetes.io/pool: edge
    # taints:
    #   - {key: pool, value: edge, effect: NoSchedule}
    # kubeletExtraArgs:
    #   - {name: v, value: "2"}
    # kubeletConfiguration:
    #   maxPods: 60
    #   containerLogMaxSize: 20Mi
`;

const HOSTS = `# A range defines many hosts: [1:3], [001:200], [1:9:2], [a:f].
hosts:
  - name: edge-[01:03]
    address: 192.0.2.{{ number }}
    groups: [edge]
  - name: worker-1
    address: 192.0.2.101
    # A host supports the same settings as a group:
    # nodeName: worker-1.example.com
    # kubeletConfiguration: {maxPods: 250}

# Hosts of an inventory of Ansible, or of ssh_config:
# imports:
#   - ansibleInventory: inventory/hosts.ini
#     hosts: [edge, "!edge-9*"]
#   - sshConfig: ~/.ssh/config
#     hosts: ["lab-*"]
#     groups: [edge]
`;

function machinesText(machines: readonly StarterMachine[]): string {
  const user = userOf(machines);
  const lines = ['# A host supports the same settings as a group.', 'hosts:'];
  for (const machine of machines) {
    const { name, role, address, port, identityFiles, bastion } = machine;
    lines.push(`  - name: ${quoted(name)}`);
    if (role !== 'worker') lines.push(`    role: ${role}`);
    lines.push(`    address: ${parseIp(address) === null ? quoted(address) : address}`);
    const ownUser = user === null ? machine.user : null;
    if (port === null && identityFiles.length === 0 && ownUser === null && bastion === undefined) continue;
    lines.push('    ssh:');
    if (ownUser !== null) lines.push(`      user: ${quoted(ownUser)}`);
    if (port !== null) lines.push(`      port: ${port}`);
    if (bastion !== undefined) lines.push(`      bastion: ${quoted(bastion)}`);
    if (identityFiles.length > 0) lines.push('      identityFiles:', ...identityFiles.map((path) => `        - ${quoted(path)}`));
  }
  return `${lines.join('\n')}\n`;
}

function importsText(imports: readonly StarterImport[]): string {
  const lines = ['# Hosts are read from here on each run. Settings of the same host under hosts take precedence.', 'imports:'];
  for (const { source, path, inventory } of imports) {
    const count = inventory.hosts.length;
    const names = inventory.hosts.slice(0, 5).map(({ name }) => name);
    lines.push(`  - ${source}: ${quoted(path)}`);
    lines.push(`    # ${count === 1 ? '1 host' : `${count} hosts`}: ${names.join(', ')}${count > names.length ? ', ...' : ''}`);
    const only = nodePatterns(inventory);
    if (only === null) lines.push('    # hosts: ["edge-*", "!edge-9*"]    # only these, by name or group');
    else lines.push(`    hosts: [${only.map(quoted).join(', ')}]    # the others are not nodes`);
    lines.push('    # groups: [edge]');
  }
  return `${lines.join('\n')}\n`;
}

/** The groups to import from an inventory with a group of all nodes and other hosts. */
function nodePatterns(inventory: ImportedInventory): readonly string[] | null {
  const { hosts, groups: names } = inventory;
  const group = nodeGroupOf(inventory);
  const others = hosts.filter(({ groups: own }) => group !== undefined && !own.includes(group));
  if (group === undefined || others.length === 0) return null;
  const withRole = names.filter((name) => roleOfGroup(name, inventory) !== null && others.some(({ groups: own }) => own.includes(name)));
  return [group, ...withRole];
}

/** Unquoted if YAML reads the text as a string, otherwise quoted. */
function quoted(text: string): string {
  return /^[A-Za-z~./_][\w./~-]*$/.test(text) && !/^(?:y|n|yes|no|on|off|true|false|null|~|\.(?:nan|inf))$/i.test(text)
    ? text
    : JSON.stringify(text);
}
