import type { ImportedInventory } from './entries.ts';
import { FLEET_API_VERSION, FLEET_KIND } from './schema.ts';

/** What a start file imports, with what was found there. */
export interface StarterImport {
  readonly source: 'ansibleInventory' | 'sshConfig';
  readonly path: string;
  readonly inventory: ImportedInventory;
}

/** More groups in a start file would hide the rest. */
const MAX_GROUPS = 30;

/**
 * A fleet file to start from: all that is needed, and as comments what else there is. It is valid as it stands.
 * @param kubernetesVersion `1.36`
 */
export function starterFile(kubernetesVersion: string, imports: readonly StarterImport[]): string {
  return [header(kubernetesVersion), groups(imports), imports.length === 0 ? HOSTS : importsText(imports)].join('\n');
}

function header(kubernetesVersion: string): string {
  return `# yaml-language-server: $schema=fleet.schema.json
# The line above is for editors; the schema is made by: kubeletadm fleet schema > fleet.schema.json
apiVersion: ${FLEET_API_VERSION}
kind: ${FLEET_KIND}

# Of the kubelets: configurations are judged by it before a host is asked.
kubernetesVersion: "${kubernetesVersion}"

# How the cluster is reached. Paths count from this file. No secret belongs in here.
cluster:
  kubeconfig: ~/.kube/config
  # context: production
  # Without a kubeconfig nodes join by token:
  # endpoint: api.example.com:6443
  # caCertHashes: ["sha256:0123..."]
  # token: {env: KUBELETADM_TOKEN}      # or {file: PATH}

# What holds for all hosts. Groups and hosts have the same members and win over it.
baseline:
  # Variables fill templates, {{ name }}, in any text of the file. Every host has name; one of a range also index (001) and number (1).
  variables:
    domain: cluster.local
  # What is left out is as ssh_config says.
  # ssh:
  #   user: root
  #   port: 22
  #   identityFiles: [~/.ssh/id_ed25519]
  #   bastion: jump.example.com         # or the name of a host with role: bastion
  #   become: auto                      # sudo where the user is not root
  #   hostKeys: ["ssh-ed25519 AAAA..."] # else known_hosts; kubeletadm fleet trust records keys there
  # nodeIP: 10.0.0.{{ number }}
  # criSocket, resolvConf and cgroupDriver are detected where they are left out.
  # Any field of KubeletConfiguration:
  kubeletConfiguration:
    clusterDomain: "{{ domain }}"
    maxPods: 110
`;
}

function groups(imports: readonly StarterImport[]): string {
  const found = [...new Set(imports.flatMap(({ inventory }) => inventory.groups))].filter(
    (name) => /^[A-Za-z0-9_][\w.-]*$/.test(name) && name !== 'all',
  );
  const lines = ['# A host may be in several groups: of those it lists the later ones win.'];
  if (found.length === 0)
    return imports.length === 0 ? `${lines.join('\n')}\n${EDGE_GROUP}` : `${lines.join('\n')}\n# groups:\n#   - name: edge\n`;
  lines.push('# These are the groups of the inventory; what is said here is laid over all their hosts.', 'groups:');
  for (const name of found.slice(0, MAX_GROUPS)) lines.push(`  - name: ${quoted(name)}`);
  if (found.length > MAX_GROUPS) lines.push(`  # and ${found.length - MAX_GROUPS} more, which need not be listed`);
  return `${lines.join('\n')}\n`;
}

const EDGE_GROUP = `groups:
  - name: edge
    labels:
      node.kubernetes.io/pool: edge
    # taints:
    #   - {key: pool, value: edge, effect: NoSchedule}
    # kubeletExtraArgs:
    #   - {name: v, value: "2"}
    kubeletConfiguration:
      maxPods: 60
      evictionHard:
        memory.available: 100Mi
`;

const HOSTS = `# A range stands for many hosts: [1:3], [001:200], [1:9:2], [a:f].
hosts:
  - name: edge-[01:03]
    address: 192.0.2.{{ number }}
    groups: [edge]
  - name: worker-1
    address: 192.0.2.101
    # One host may say anything a group says:
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

function importsText(imports: readonly StarterImport[]): string {
  const lines = [
    '# Hosts are read from here each time. One that is listed under hosts as well gets what is said there on top.',
    'imports:',
  ];
  for (const { source, path, inventory } of imports) {
    const count = inventory.hosts.length;
    const names = inventory.hosts.slice(0, 5).map(({ name }) => name);
    lines.push(`  - ${source}: ${quoted(path)}`);
    lines.push(`    # ${count === 1 ? '1 host' : `${count} hosts`}: ${names.join(', ')}${count > names.length ? ', ...' : ''}`);
    lines.push('    # hosts: ["edge-*", "!edge-9*"]    # only these, by name or group');
    lines.push('    # groups: [edge]');
  }
  return `${lines.join('\n')}\n`;
}

/** Plain where YAML takes it for a text, else in quotes. */
function quoted(text: string): string {
  return /^[A-Za-z~./_][\w./~-]*$/.test(text) && !/^(?:y|n|yes|no|on|off|true|false|null|~|\.(?:nan|inf))$/i.test(text)
    ? text
    : JSON.stringify(text);
}
