/** The network of a lab: hosts have addresses inside it, and their processes listen on loopback addresses of the local host. */
export interface LabNetwork {
  addressOf(index: number): string;
  /** The loopback address for an address of a lab host; null: the address is not one of the lab. */
  loopbackOf(address: string): string | null;
}

const SUBNET = '192.168.99';

/** @param port a port of this lab, which no other lab on the local host has: loopback addresses are derived from it */
export function labNetwork(port: number): LabNetwork {
  const loopbacks = `127.${port >> 8}.${port & 255}`;
  return {
    addressOf: (index) => `${SUBNET}.${11 + index}`,
    loopbackOf: (address) => {
      const [, subnet = '', number = ''] = /^(.*)\.(\d+)$/.exec(address) ?? [];
      return subnet === SUBNET || subnet === loopbacks ? `${loopbacks}.${number}` : null;
    },
  };
}
