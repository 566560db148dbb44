import type { JsonObject } from '../../base/json.ts';
import type { FactQueries } from '../../host/facts/query.ts';
import type { FieldChange } from '../../host/plan/impact.ts';
import type { KubeletReader } from '../../kubelet/catalogue/catalogue.ts';
import { configFieldChanges } from '../../kubelet/effective/field-changes.ts';
import { type HostText, layerRunningConfig, type ParsedHostFile, type RunningConfigInput } from '../../kubelet/effective/running-config.ts';
import type { LayeredConfig } from '../../kubelet/layers/layers.ts';
import { designGroup, type GroupDesign, type GroupInput } from './group-design.ts';

/**
 * The groups of hosts of one run: hosts with equal inputs share one design. Created by the caller that plans
 * the hosts, and handed on to each of them; a single host is a group of one.
 */
export class NodeGroups {
  readonly #designs = new Map<string, GroupDesign>();
  readonly #effective = new Map<string, LayeredConfig>();
  readonly #changes = new Map<string, readonly FieldChange[]>();
  readonly #queries = new Map<string, FactQueries>();
  readonly #numbers = new Map<object | string, number>();
  readonly #most: number;

  /** @param most maximum number of designs kept: a fleet of hosts that all differ gains nothing from them */
  constructor(most = 1_000) {
    this.#most = most;
  }

  /**
   * The design of the group with this input, computed for its first host.
   * @throws AppError as `designGroup`, for each host of the group
   */
  designOf(input: GroupInput): GroupDesign {
    this.#limit();
    const key = this.#keyOf(input);
    const design = this.#designs.get(key) ?? designGroup(input);
    this.#designs.set(key, design);
    return design;
  }

  /**
   * The effective configuration of kubelets with this input, computed for the first of them.
   * @throws AppError as `layerRunningConfig`, for each of them
   */
  effectiveOf(input: RunningConfigInput): JsonObject {
    return this.layersOf(input).config;
  }

  layersOf(input: RunningConfigInput): LayeredConfig {
    this.#limit();
    const { catalogue, configFile, ...values } = input;
    const key = JSON.stringify([this.#numberOf(catalogue), configFile && this.#textKey(configFile), values]);
    const layered = this.#effective.get(key) ?? layerRunningConfig(input).layered;
    this.#effective.set(key, layered);
    return layered;
  }

  /**
   * The changed fields between two effective configurations of this run, computed for the first host with both.
   * @param before as `effectiveOf` returned it, like `after`: compared by identity
   */
  fieldChangesOf(before: JsonObject, after: JsonObject, { catalogue, minor }: KubeletReader): readonly FieldChange[] {
    const key = JSON.stringify([...[before, after, catalogue].map((object) => this.#numberOf(object)), minor]);
    const changes = this.#changes.get(key) ?? configFieldChanges(before, after, { catalogue, minor });
    this.#changes.set(key, changes);
    return changes;
  }

  /**
   * The queries of all hosts with these values, made for the first of them.
   * @param values all values that the queries depend on
   */
  queriesOf(values: readonly (string | undefined)[], make: () => FactQueries): FactQueries {
    this.#limit();
    const key = JSON.stringify(values);
    const queries = this.#queries.get(key) ?? make();
    this.#queries.set(key, queries);
    return queries;
  }

  /**
   * All inputs of `designGroup`: the large objects, which the run loads once, by identity, and the other values
   * as text.
   */
  #keyOf({ templates, catalogue, cluster, overlays, ...values }: GroupInput): string {
    const objects = [templates, catalogue, cluster, ...overlays].map((object) => this.#numberOf(object));
    return JSON.stringify([objects, values]);
  }

  /** A file with the number of its text, which is long and equal on many hosts. */
  #textKey(file: HostText | ParsedHostFile): object {
    return 'text' in file ? { ...file, text: this.#numberOf(file.text) } : file;
  }

  #numberOf(value: object | string): number {
    const number = this.#numbers.get(value) ?? this.#numbers.size;
    this.#numbers.set(value, number);
    return number;
  }

  #limit(): void {
    if (this.#designs.size < this.#most && this.#effective.size < this.#most && this.#queries.size < this.#most) return;
    this.#designs.clear();
    this.#effective.clear();
    this.#changes.clear();
    this.#queries.clear();
    this.#numbers.clear();
  }
}
