/** How the page writes how many there are. */
export const COUNT = new Intl.NumberFormat('en-US');
