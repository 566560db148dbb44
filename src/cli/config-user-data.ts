import { Document, isPair, isScalar, isSeq, visit } from 'yaml';
import type { ExitCode } from '../base/errors.ts';
import { printableJson } from '../base/text/printable.ts';
import { firstBoot } from '../kubeadm/user-data/first-boot.ts';
import { type ButaneVariant, butaneConfig, cloudConfig, ignitionConfig } from '../kubeadm/user-data/formats.ts';
import { hostPath, parseJoinFile } from '../kubeadm/user-data/join-unit.ts';
import type { FirstBoot, UserDataFormat } from '../kubeadm/user-data/model.ts';
import { hostProxy, type ProxyOptions } from '../kubeadm/user-data/proxy.ts';
import type { Services } from './output/services.ts';

export interface UserDataRequest {
  readonly format: UserDataFormat;
  readonly variant: ButaneVariant;
  /** Undefined: no files except the unit. */
  readonly rootDir: string | undefined;
  /** A URL, or a path of the host. */
  readonly joinFile: string;
  /** A local file. */
  readonly joinFileCa: string | undefined;
  readonly program: string;
  readonly proxy: ProxyOptions;
  readonly allowedSecrets: readonly string[];
}

/** `config user-data`: prints user data with which a host joins a cluster at its first boot. */
export async function runUserData(services: Services, request: UserDataRequest): Promise<ExitCode> {
  const { format, rootDir, joinFileCa, program } = request;
  const caPem = joinFileCa === undefined ? null : await services.input.readText(joinFileCa);
  const joinFile = parseJoinFile(request.joinFile, caPem);
  const entries = rootDir === undefined ? [] : await services.readHostEntries(rootDir);
  const { content, omitted } = firstBoot({
    entries,
    joinFile,
    program: hostPath(program, '--program'),
    proxy: hostProxy(request.proxy),
    allowedSecrets: request.allowedSecrets,
  });
  if (omitted !== null)
    services.output.stderr(`${omitted} is omitted, because this file contains a bootstrap token; join creates the file on the host\n`);
  services.output.document(showUserData(content, format, request.variant));
  return 0;
}

function showUserData(content: FirstBoot, format: UserDataFormat, variant: ButaneVariant): string {
  if (format === 'ignition') return `${printableJson(ignitionConfig(content), 2)}\n`;
  if (format === 'butane') return yamlText(butaneConfig(content, variant));
  return `#cloud-config\n${yamlText(cloudConfig(content))}`;
}

/** YAML 1.1, which cloud-init reads, and which Butane reads as well; modes in octal digits. */
function yamlText(value: object): string {
  const document = new Document(value, { version: '1.1' });
  visit(document, {
    Seq: (_, list, ancestors) => {
      // A command in one line.
      if (isSeq(ancestors.at(-1))) list.flow = true;
    },
    Pair: (_, pair) => {
      if (isPair(pair) && isScalar(pair.key) && pair.key.value === 'mode' && isScalar(pair.value)) pair.value.format = 'OCT';
    },
  });
  return document.toString({ lineWidth: 0, blockQuote: 'literal' });
}
