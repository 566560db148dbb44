import { AppError, type Problem } from '../../base/errors.ts';
import { entryOf, parseSource, type SourceDocument, type SourceMap, type SourceNode } from '../../codec/source.ts';
import { importInvalid } from '../file/fleet-problems.ts';
import type { StarterMachine } from './starter.ts';

const K0SCTL_API = /^["']?k0sctl\.k0sproject\.io\//;

export function isK0sctl(text: string): boolean {
  return /^apiVersion:[ \t]*["']?k0sctl\.k0sproject\.io\//m.test(text);
}

/** Roles of k0sctl. All but workers run the control plane. */
const ROLES: ReadonlySet<string> = new Set(['controller', 'controller+worker', 'single', 'worker']);

/**
 * Reads the hosts of a k0sctl.yaml: role, name, address, user, port, key and bastion.
 * @param file its name in problems
 * @returns the machines, bastions first, with key files as written; and the hosts and fields that are not imported
 * @throws AppError (exit code 2) with all problems: CONFIG_SYNTAX, FLEET_IMPORT_INVALID
 * @see k0sctl pkg/apis/k0sctl.k0sproject.io/v1beta1/cluster (0.19), rig ssh.go: the default user is root
 */
export function readK0sctl(text: string, file: string) {
  const { documents, problems: syntax } = parseSource(text, file);
  if (syntax.length > 0) throw new AppError(syntax, { exitCode: 2 });
  const document = documents.find(({ root }) => K0SCTL_API.test(textOf(root, 'apiVersion') ?? ''));
  const spec = mapAt(document?.root, 'spec');
  const hosts = entryOf(spec ?? null, 'hosts')?.value;
  if (document === undefined || hosts?.kind !== 'list') {
    const problem = importInvalid('no hosts of k0sctl found', 'Pass a k0sctl.yaml with spec.hosts');
    throw new AppError({ ...problem, position: { file, line: 1, column: 1 } }, { exitCode: 2 });
  }
  const reader = new HostReader(document);
  for (const [index, host] of hosts.items.entries()) if (host.kind === 'map') reader.add(host, index);
  if (reader.problems.length > 0) throw new AppError(reader.problems, { exitCode: 2 });
  const ignoredSpec = (spec?.entries ?? []).flatMap(({ key }) => (key === 'hosts' ? [] : [`spec.${key}`]));
  return { machines: [...reader.bastions.values(), ...reader.named()], ignored: [...reader.ignored, ...ignoredSpec] };
}

class HostReader {
  readonly bastions = new Map<string, StarterMachine>();
  readonly problems: Problem[] = [];
  readonly ignored = new Set<string>();
  readonly #hosts: (Omit<StarterMachine, 'name'> & { readonly hostname: string | null })[] = [];
  readonly #document: SourceDocument;

  constructor(document: SourceDocument) {
    this.#document = document;
  }

  add(host: SourceMap, index: number): void {
    const path = `spec.hosts[${index}]`;
    const ssh = mapAt(host, 'ssh') ?? mapAt(host, 'openSSH');
    if (ssh === undefined) {
      this.ignored.add(`${path} (${mapAt(host, 'winRM') === undefined ? 'no SSH' : 'WinRM'})`);
      return;
    }
    for (const { key } of host.entries) if (!HOST_FIELDS.has(key)) this.ignored.add(`spec.hosts[].${key}`);
    for (const { key } of ssh.entries) if (!SSH_FIELDS.has(key)) this.ignored.add(`spec.hosts[].ssh.${key}`);
    const role = this.#text(host, 'role', path) ?? 'worker';
    if (!ROLES.has(role))
      this.#refuse(entryOf(host, 'role')?.value ?? host, `${path}.role: ${JSON.stringify(role)} is not a role of k0sctl`);
    const bastion = mapAt(ssh, 'bastion');
    this.#hosts.push({
      ...this.#connection(ssh, path),
      role: role === 'worker' ? 'worker' : 'control-plane',
      hostname: this.#text(host, 'hostname', path),
      bastion: bastion === undefined ? undefined : this.#bastion(bastion, `${path}.ssh.bastion`),
    });
  }

  /** Without `hostname` a host has its address as name, with the port if several have the address. */
  named(): readonly StarterMachine[] {
    return this.#hosts.map(({ hostname, ...machine }) => {
      const isShared = this.#hosts.filter(({ address }) => address === machine.address).length > 1;
      return { name: hostname ?? (isShared ? `${machine.address}-${machine.port ?? 22}` : machine.address), ...machine };
    });
  }

  #bastion(bastion: SourceMap, path: string): string {
    const connection = this.#connection(bastion, path);
    const key = JSON.stringify(connection);
    const known = this.bastions.get(key) ?? { name: `bastion-${this.bastions.size + 1}`, role: 'bastion', ...connection };
    this.bastions.set(key, known);
    return known.name;
  }

  #connection(ssh: SourceMap, path: string): Pick<StarterMachine, 'address' | 'user' | 'port' | 'identityFiles'> {
    const address = this.#text(ssh, 'address', path);
    if (address === null) this.#refuse(ssh, `${path} has no address`);
    const port = this.#text(ssh, 'port', path);
    const key = this.#text(ssh, 'keyPath', path);
    return {
      address: address ?? '',
      user: this.#text(ssh, 'user', path) ?? 'root',
      port: port === null || port === '22' ? null : Number(port),
      identityFiles: key === null ? [] : [key],
    };
  }

  /** k0sctl replaces variables of the environment. */
  #text(map: SourceMap, name: string, path: string): string | null {
    const node = entryOf(map, name)?.value;
    const text = textOf(map, name);
    if (node === undefined || text === undefined || text === '') return null;
    if (text.includes('$'))
      this.#refuse(
        node,
        `${path}: ${name} has a variable of the environment`,
        'Run envsubst < k0sctl.yaml > new.yaml, and import the new file',
      );
    return text;
  }

  #refuse(node: SourceNode, message: string, hint?: string): void {
    this.problems.push({ ...importInvalid(message, hint), position: this.#document.positionAt(node.offset) });
  }
}

const HOST_FIELDS: ReadonlySet<string> = new Set(['role', 'hostname', 'ssh', 'openSSH']);
const SSH_FIELDS: ReadonlySet<string> = new Set(['address', 'user', 'port', 'keyPath', 'bastion']);

function mapAt(node: SourceNode | null | undefined, name: string): SourceMap | undefined {
  const value = entryOf(node ?? null, name)?.value;
  return value?.kind === 'map' ? value : undefined;
}

function textOf(node: SourceNode | null, name: string): string | undefined {
  const value = entryOf(node, name)?.value;
  return value?.kind === 'scalar' && value.scalar.type !== 'null' ? value.text : undefined;
}
